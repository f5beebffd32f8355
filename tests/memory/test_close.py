"""A memory that is closed: it says so, and opens by `with` alone."""

from __future__ import annotations

import asyncio

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory.errors import ConfigurationError
from tests.conftest import Door


async def test_a_closed_memory_says_so_and_opens_by_with_alone(door: Door, user_id: str) -> None:
    memory = door.service
    conversation = memory.for_user(user_id).conversation("t")
    await door(conversation.append, [HumanMessage("hi")])
    for close in (memory.aclose, lambda: asyncio.to_thread(memory.close)):
        await close()
        await close()
        for call in (conversation.count, conversation.read, conversation.context):
            with pytest.raises(ConfigurationError, match="The memory is closed.*enter it again"):
                await door(call)
        async with memory:
            assert await door(conversation.count) == 1
        with memory:
            assert await door(conversation.count) == 1
    with memory:
        async with memory:
            await door(conversation.count)
        assert await door(conversation.count) == 1, "who entered it first still uses it"
    with pytest.raises(ConfigurationError, match="closed"):
        await door(conversation.count)
    memory.__enter__()
