"""Fixtures of the inspector's tests: a memory with a server's rights, and its conversations."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from langchain_supabase_memory import SupabaseMemory
from tests.inspector.visiting import memory_of


@pytest.fixture
async def memory(conn_string: str, user_id: str) -> AsyncIterator[SupabaseMemory]:
    """A memory of one user."""
    async with memory_of(conn_string, user_id) as made:
        yield made


@pytest.fixture
async def server(conn_string: str) -> AsyncIterator[SupabaseMemory]:
    """A memory of everybody."""
    async with memory_of(conn_string) as made:
        yield made
