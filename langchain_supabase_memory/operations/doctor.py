"""The reports on the database's state, for an operator and for a signed-in user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.effects import SCHEMA, call

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.effects import Flow


def worker_report(model: str | None) -> Flow[Mapping[str, Any]]:
    """Return what the database reports to a caller with a server's rights: the document of `memory_worker_doctor`.

    Args:
        model: The embedder's name, to find chunks without its vectors.
    """
    document: Mapping[str, Any] = yield from call("memory_worker_doctor", {"p_model": model})
    return document


def schema_report() -> Flow[Mapping[str, Any]]:
    """Return what the database reports to any signed-in user: the installed schema."""
    document: Mapping[str, Any] = yield from call(SCHEMA, {})
    return document
