"""A page leaves no read behind."""

from __future__ import annotations

import asyncio

import pytest

from langchain_supabase_memory.inspector.gather import gather_all


async def test_an_error_is_raised_once_all_reads_have_ended() -> None:
    ended = []

    async def read(name: str, seconds: float) -> str:
        await asyncio.sleep(seconds)
        ended.append(name)
        return name

    async def fail() -> str:
        raise LookupError("gone")

    with pytest.raises(LookupError, match="gone"):
        await gather_all(fail(), read("slow", 0.01))
    assert ended == ["slow"]
    assert [*await gather_all(read("a", 0.01), read("b", 0))] == ["a", "b"]
