"""Transports to the database; to build a memory on one, use `SupabaseMemory(transport)`."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport
    from langchain_supabase_memory.adapters.transports.supabase import SupabaseTransport

__all__ = [
    "PostgresTransport",
    "SupabaseTransport",
]

_HOMES = {"PostgresTransport": "postgres", "SupabaseTransport": "supabase"}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:  # each needs a package that the other does not
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"langchain_supabase_memory.adapters.transports.{_HOMES[name]}"), name)
