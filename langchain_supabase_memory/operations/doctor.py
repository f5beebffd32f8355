"""The flows over how the database stands: what an operator sees of it, and what a signed-in user does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.effects import SCHEMA, call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.effects import Flow


def worker_report(model: str | None) -> Flow[Mapping[str, Any]]:
    """What the database tells who has a server's rights: the document of `memory_worker_doctor`.

    Args:
        model: The embedder's name, for what lacks its vectors.
    """
    document: Mapping[str, Any] = yield from call("memory_worker_doctor", {"p_model": model})
    return document


def schema_report() -> Flow[Mapping[str, Any]]:
    """What the database tells everybody who is signed in: what it is set up with."""
    document: Mapping[str, Any] = yield from call(SCHEMA, {})
    return document
