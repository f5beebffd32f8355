"""Settings by their names alone, as the keywords by which a memory is made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from langchain_supabase_memory.memory.config import MemoryConfig

_NAMES = {each.name for each in fields(MemoryConfig)}


def memory_keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    """What a `MemoryConfig` holds in one, all else as it is."""
    held = {name: value for name, value in settings.items() if name in _NAMES}
    rest = {name: value for name, value in settings.items() if name not in _NAMES}
    return {**rest, "config": MemoryConfig(**held)} if held else rest
