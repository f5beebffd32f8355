"""LangChain's standard tests of retrievers and tools, against the real database."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.retrievers import BaseRetriever
from langchain_core.tools import BaseTool
from langchain_tests.integration_tests import RetrieversIntegrationTests, ToolsIntegrationTests
from langchain_tests.unit_tests import ToolsUnitTests

from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryRetriever, SupabaseMemoryToolkit
from tests.services.data_api import DataApi, token

TOOLS: list[tuple[str, dict[str, Any]]] = [
    ("search_conversation_history", {"query": "glaze", "time_range": "week", "limit": 3}),
    ("get_conversation_summary", {"conversation_id": "t"}),
    ("recall_context", {"context_type": "facts"}),
    ("get_turn", {"n": 1}),
    ("read_messages", {"first": 0, "last": 3}),
    ("get_profile", {}),
]


class TestTheRetriever(RetrieversIntegrationTests):
    memory: SupabaseMemory

    @pytest.fixture(autouse=True, params=["words", "meaning", "data_api"])
    def stored(
        self, request: pytest.FixtureRequest, conn_string: str, data_api: DataApi, user_id: str
    ) -> Iterator[None]:
        embeddings = DeterministicFakeEmbedding(size=384) if request.param == "meaning" else None
        made = (
            SupabaseMemory.from_url(
                data_api.url, token("service_role"), rest_path="", user_id=user_id, embeddings=embeddings
            )
            if request.param == "data_api"
            else SupabaseMemory.from_conn_string(conn_string, user_id=user_id, embeddings=embeddings)
        )
        with made as memory:
            memory.conversation("t").append([HumanMessage(f"The glaze number {n} is blue") for n in range(6)])
            memory.conversation("t").index()
            type(self).memory = memory
            yield

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return SupabaseMemoryRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"memory": self.memory, "thread_id": "t"}

    @property
    def retriever_query_example(self) -> str:
        return "Which glaze is blue?"


class Tool:
    """A tool as the standard tests want it."""

    memory: SupabaseMemory
    chosen: tuple[str, dict[str, Any]]

    @property
    def tool_constructor(self) -> BaseTool:
        tools = {tool.name: tool for tool in SupabaseMemoryToolkit(memory=self.memory, thread_id="t").get_tools()}
        return tools[self.chosen[0]]

    @property
    def tool_invoke_params_example(self) -> dict[str, Any]:
        return self.chosen[1]


class TestTheToolsWithoutADatabase(Tool, ToolsUnitTests):
    @pytest.fixture(autouse=True, params=TOOLS, ids=[name for name, _ in TOOLS])
    def choose(self, request: pytest.FixtureRequest) -> None:
        # Nothing is connected when a tool is made: this address is nobody's.
        type(self).memory = SupabaseMemory.from_conn_string("postgresql://x@127.0.0.1:1/x", user_id="u")
        type(self).chosen = request.param


class TestTheTools(Tool, ToolsIntegrationTests):
    @pytest.fixture(autouse=True, params=TOOLS, ids=[name for name, _ in TOOLS])
    def stored(self, request: pytest.FixtureRequest, conn_string: str, user_id: str) -> Iterator[None]:
        with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=lambda _: "Glazes.") as memory:
            for n in range(3):
                memory.conversation("t").append([HumanMessage(f"Glaze {n}?"), AIMessage(f"Glaze {n} is blue")])
            type(self).memory = memory
            type(self).chosen = request.param
            yield
        assert memory is type(self).memory
