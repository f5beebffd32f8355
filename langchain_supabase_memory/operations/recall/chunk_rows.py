"""Chunks of the SQL functions as values."""

from __future__ import annotations

from dataclasses import fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.operations.rows import frozen_value, time_of
from langchain_supabase_memory.values import Chunk, Signal

if TYPE_CHECKING:
    from collections.abc import Mapping

_AS_THEY_ARE: Final = frozenset(each.name for each in fields(Chunk)) - {"said_at", "expires_at", "signals", "tone"}


def chunk(row: Mapping[str, Any], **extra: Any) -> Chunk:
    """Return a chunk of the SQL functions as a value."""
    values = {name: value for name, value in row.items() if name in _AS_THEY_ARE}
    values |= extra
    values["episode"] = row["stretch"]
    values["said_at"] = datetime.fromisoformat(row["said_at"])
    values["expires_at"] = time_of(row["expires_at"])
    if row.get("signals"):
        values["signals"] = Signal(row["signals"])
    if row.get("tone") is not None:
        values["tone"] = row["tone"] / 100
    return frozen_value(Chunk, values)
