"""Ids derived from a source's content, so that a repeated import gets the same ids."""

from __future__ import annotations

from hashlib import sha256
from typing import Final
from uuid import UUID, uuid5

_SPACE: Final = UUID("5d5f7d0e-5a5b-4b52-9f6f-0c7b2f0d8a64")


def thread_id(*parts: object) -> str:
    """Return an id for a conversation that has none.

    Args:
        parts: What distinguishes it from other conversations.
    """
    return str(uuid5(_SPACE, _digest(parts)))


def message_id(*parts: object) -> str:
    """Return an id for a message that has none; the prefix keeps it from being sent to model providers.

    Args:
        parts: What distinguishes it from other messages of its conversation.
    """
    return f"lc_{uuid5(_SPACE, _digest(parts))}"


def _digest(parts: tuple[object, ...]) -> str:
    return sha256("\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")).hexdigest()
