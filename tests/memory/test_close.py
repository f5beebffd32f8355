"""A closed memory reports that it is closed, and only opens with `with`."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory.errors import ConfigurationError
from tests.conftest import Caller


async def test_a_closed_memory_says_so_and_opens_by_with_alone(caller: Caller, user_id: str) -> None:
    memory = caller.service
    conversation = memory.for_user(user_id).conversation("t")
    await caller(conversation.append, [HumanMessage("hi")])
    for close in (memory.aclose, lambda: asyncio.to_thread(memory.close)):
        await close()
        await close()
        for call in (conversation.count, conversation.read, conversation.context):
            with pytest.raises(ConfigurationError, match="The memory is closed.*enter it again"):
                await caller(call)
        async with memory:
            assert await caller(conversation.count) == 1
        with memory:
            assert await caller(conversation.count) == 1
    with memory:
        async with memory:
            await caller(conversation.count)
        assert await caller(conversation.count) == 1, "who entered it first still uses it"
    with pytest.raises(ConfigurationError, match="closed"):
        await caller(conversation.count)
    memory.__enter__()
