"""What takes too long before an answer is done behind it, and each answer keeps its memory."""

from __future__ import annotations

import asyncio
from threading import Event
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware
from tests.agents.test_paste import FACT, FILLING
from tests.chat_models import says
from tests.embedders import WordEmbedder


class SlowEmbedder(WordEmbedder):
    """Embeds documents when it is told to."""

    def __init__(self) -> None:
        super().__init__(width=48, model="slow")
        self.goes_on, self.again = Event(), Event()
        self.begun = 0

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.begun += 1
        if self.begun == 2:
            self.again.set()
        self.goes_on.wait(30)
        return super().embed_documents(texts)


@pytest.mark.parametrize("is_async", [False, True])
async def test_what_takes_too_long_to_index_is_indexed_behind_the_answer(
    conn_string: str, user_id: str, is_async: bool
) -> None:
    model, embedder = says("Yes."), SlowEmbedder()
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embedder) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("My dog is called Rex."), AIMessage("Good dog.")])
        conversation.append([HumanMessage(FILLING * 300 + FACT + FILLING * 300), AIMessage("Read.")])
        agent: Any = create_agent(
            model, [], middleware=[SupabaseMemoryMiddleware(memory, deadline_seconds=3.0, on_error="raise")]
        )

        async def ask(text: str) -> None:
            given, thread = {"messages": [HumanMessage(text)]}, {"configurable": {"thread_id": "t"}}
            await (agent.ainvoke(given, thread) if is_async else asyncio.to_thread(agent.invoke, given, thread))

        await ask("What is my dog called?")
        assert await asyncio.to_thread(embedder.again.wait, 10)  # before the answer, then behind it
        await ask("And what does the reactor need?")
        assert embedder.begun == 2, "the next answer waited for the same again"
        assert all("Rex" in str(shown) for shown in model.shown), "an answer was given without memory"
        embedder.goes_on.set()
        memory.flush()
        status = conversation.work.status()
        assert status is not None
        assert status.indexed_through >= 4
