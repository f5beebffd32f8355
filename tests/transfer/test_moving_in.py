"""Migrate from langmem, a history and a saver, all in Postgres, as the docs describe, and continue."""

from __future__ import annotations

import uuid

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.store.postgres import PostgresStore
from langmem import create_manage_memory_tool, create_search_memory_tool

from langchain_supabase_memory import SupabaseChatMessageHistory, SupabaseMemory, SupabaseStore
from langchain_supabase_memory.agents.nodes import SaveTurnNode
from langchain_supabase_memory.transfer import import_conversations, sources
from tests.services.postgres import Cluster


@pytest.fixture
def old_address(cluster: Cluster) -> str:
    """A database of their own for the tables that are left."""
    return cluster.conn_string(cluster.migrated_database())


def test_memories_of_langmem_are_found_by_langmem_in_the_new_store(memory: SupabaseMemory, old_address: str) -> None:
    namespace = ("memories", "maya")
    new = SupabaseStore(memory)
    with PostgresStore.from_conn_string(old_address) as old:
        old.setup()
        manage = create_manage_memory_tool(namespace, store=old)
        for number in range(250):
            manage.invoke({"content": f"Glaze {number} is blue.", "action": "create"})
        for each in old.list_namespaces(prefix=("memories",)):
            offset = 0
            while items := old.search(each, limit=100, offset=offset):
                offset += len(items)
                for item in items:
                    new.put(item.namespace, item.key, item.value)
    assert len(new.search(namespace, limit=1000)) == 250
    search = create_search_memory_tool(namespace, store=new)
    assert "Glaze 7 is blue." in search.invoke({"query": "Glaze 7"})
    manage = create_manage_memory_tool(namespace, store=new)
    manage.invoke({"content": "Glaze 250 is green.", "action": "create"})
    assert len(new.search(namespace, limit=1000)) == 251


def test_a_history_goes_on_where_it_was(memory: SupabaseMemory, old_address: str) -> None:
    from langchain_postgres import PostgresChatMessageHistory  # a second of the processor

    session = str(uuid.uuid4())
    with psycopg.connect(old_address) as connection:
        PostgresChatMessageHistory.create_tables(connection, "chat_history")
        old = PostgresChatMessageHistory("chat_history", session, sync_connection=connection)
        old.add_messages([HumanMessage("E-47?"), AIMessage("The thermocouple.")])
        before = [(message.type, message.text) for message in old.get_messages()]
    import_conversations(memory, sources.langchain_postgres(old_address))
    new = SupabaseChatMessageHistory(session, memory, budget=None)
    assert [(message.type, message.text) for message in new.messages] == before
    new.add_messages([HumanMessage("Thanks")])
    import_conversations(memory, sources.langchain_postgres(old_address))
    assert [message.text for message in new.messages] == ["E-47?", "The thermocouple.", "Thanks"]


def test_a_graph_goes_on_in_its_thread(memory: SupabaseMemory, old_address: str) -> None:
    def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [AIMessage(f"Answer {len(state['messages'])}")]}

    config: RunnableConfig = {"configurable": {"thread_id": "kiln", "user_id": memory.user_id}}
    plain = StateGraph(MessagesState).add_node("answer", answer).add_edge(START, "answer")
    with PostgresSaver.from_conn_string(old_address) as saver:
        saver.setup()
        plain.compile(checkpointer=saver).invoke({"messages": [HumanMessage("First?")]}, config)
    with PostgresSaver.from_conn_string(old_address) as saver:
        receipt = import_conversations(memory, sources.langgraph(saver), owner=lambda thread: thread.about["user_id"])
        assert receipt.stored == 2

        storing = StateGraph(MessagesState).add_node("answer", answer).add_node("save", SaveTurnNode(memory))
        graph = storing.add_edge(START, "answer").add_edge("answer", "save").compile(checkpointer=saver)
        graph.invoke({"messages": [HumanMessage("Second?")]}, config)
    texts = [each.message.text for each in memory.conversation("kiln").read()]
    assert texts == ["First?", "Answer 1", "Second?", "Answer 3"]
