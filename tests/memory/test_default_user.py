"""An embedded memory's default user is one of many: work is done for all."""

from __future__ import annotations

from uuid import uuid4

import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.memory.services import ME


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_work_without_a_user_covers_all_users(conn_string: str, color: str) -> None:
    user, thread = f"ana-{uuid4()}", f"t-{uuid4()}"
    with SupabaseMemory.from_conn_string(conn_string, user_id=ME, model=None) as memory:
        memory.for_user(user).conversation(thread).add_turn("How hot is cone 6?", "About 1,222 °C.")
        memory.conversation(thread).add_turn("Is it glazed?", "Yes.")
        if color == "sync":
            page, status = memory.work.users(prefix=user), memory.work.status(thread_id=thread)
            own = memory.for_user(user).work.status(thread_id=thread)
        else:
            page, status = await memory.work.ausers(prefix=user), await memory.work.astatus(thread_id=thread)
            own = await memory.for_user(user).work.astatus(thread_id=thread)
        assert [each.user_id for each in page.users] == [user]
        assert {each.key.user_id for each in status} == {user, "me"}
        assert [each.key.user_id for each in own] == [user]
