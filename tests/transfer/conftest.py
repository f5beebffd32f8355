"""A memory to import into and to export from."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from langchain_supabase_memory import MemoryConfig, SupabaseMemory


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, config=MemoryConfig(recall=None), model=None
    ) as made:
        yield made
