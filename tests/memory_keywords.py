"""Convert plain settings to the keywords of a memory's constructor."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from langchain_supabase_memory.memory.config import MemoryConfig

_NAMES = {each.name for each in fields(MemoryConfig)}


def memory_keywords(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Group the fields of `MemoryConfig` into one, and pass the rest through."""
    held = {name: value for name, value in settings.items() if name in _NAMES}
    rest = {name: value for name, value in settings.items() if name not in _NAMES}
    return {**rest, "config": MemoryConfig(**held)} if held else rest
