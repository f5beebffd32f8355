"""Text is stored unchanged whatever the environment's encoding; a database that cannot store it is rejected."""

from __future__ import annotations

from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.schema.migrate import migrate
from langchain_supabase_memory.errors import ConfigurationError
from tests.each_case import each_case
from tests.memory_keywords import memory_keywords
from tests.services.postgres import Cluster

TEXT = "naïve – 日本 😀 ـعربيـ"


def naming(encoding: str, where: str, conn_string: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let a client name an encoding, and return the address to connect to."""
    if where == "environment":
        monkeypatch.setenv("PGCLIENTENCODING", encoding)
        return conn_string
    return f"{conn_string}?client_encoding={encoding}"


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP", "nonsense"])
@pytest.mark.parametrize("where", ["environment", "connection string"])
@pytest.mark.parametrize("color", ["sync", "async"])
async def test_every_text_is_stored_whatever_encoding_a_client_names(
    conn_string: str, user_id: str, monkeypatch: pytest.MonkeyPatch, encoding: str, where: str, color: str
) -> None:
    conn_string = naming(encoding, where, conn_string, monkeypatch)
    without: Any = {"model": None, "recall": None}
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, **memory_keywords(without)) as memory:
        conversation = memory.conversation("t")
        if color == "sync":
            conversation.append([HumanMessage(TEXT)])
        else:
            await conversation.aappend([HumanMessage(TEXT)])
        assert [each.message.text for each in conversation.read()] == [TEXT]


@pytest.mark.parametrize(
    ("encoding", "where"),
    [
        ("LATIN1", "environment"),
        ("SQL_ASCII", "connection string"),
        ("EUC_JP", "environment"),
        ("nonsense", "environment"),
        ("nonsense", "connection string"),
    ],
)
def test_it_is_migrated_whatever_encoding_a_client_names(
    own_address: str, monkeypatch: pytest.MonkeyPatch, encoding: str, where: str
) -> None:
    """In a database of the file's own: functions that are made anew cost each kept session of the shared one its plans."""
    migrate(naming(encoding, where, own_address, monkeypatch))


@each_case("encoding", ["LATIN1", "SQL_ASCII", "EUC_JP"])
def test_a_database_that_does_not_store_utf8_is_refused(cluster: Cluster, encoding: str) -> None:
    name = f"of_{encoding.lower()}"
    cluster.execute(
        f"create database {name} template template0 encoding '{encoding}' locale 'C' owner postgres", superuser=True
    )
    with pytest.raises(ConfigurationError, match=f"stores text as {encoding}.*encoding 'UTF8'"):
        migrate(cluster.conn_string(name))
