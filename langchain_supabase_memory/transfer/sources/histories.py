"""Chat histories of langchain-postgres and langchain-community, by SQL."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import messages_from_dict

from langchain_supabase_memory.transfer import ids
from langchain_supabase_memory.transfer.sources.chatml_sharegpt import time_of
from langchain_supabase_memory.transfer.sources.databases import rows
from langchain_supabase_memory.transfer.values import SourceMessage, SourceProblem, ThreadStart

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.transfer.values import Event

_COLUMNS: Final = ("id", "session_id", "message", "created_at")


def langchain_postgres(address: str, *, table: str = "chat_history") -> Iterator[Event]:
    """Read the table of langchain-postgres' `PostgresChatMessageHistory`: `session_id uuid, message jsonb, created_at`.

    A session is a conversation; a message without an id gets one from its row's.

    Args:
        address: The database's connection string.
        table: The table's name, as passed to the history.
    """
    yield from _history(address, table)


def langchain_sql(address: str, *, table: str = "message_store") -> Iterator[Event]:
    """Read the table of langchain-community's `SQLChatMessageHistory`: `id, session_id, message`.

    The table has no times, so messages get the time of the import.

    Args:
        address: The address passed to the history, as SQLAlchemy accepts it, or a file of SQLite.
        table: The table's name.
    """
    yield from _history(address, table)


def _history(address: str, table: str) -> Iterator[Event]:
    session: str | None = None
    for row_id, session_id, message, created_at in rows(address, table, _COLUMNS, ("session_id", "id")):
        place = f"{table}, row {row_id}"
        if str(session_id) != session:
            session = str(session_id)
            yield ThreadStart(session, place)
        try:
            document: Any = json.loads(message) if isinstance(message, str | bytes) else message
            made = messages_from_dict([document])[0]
            said_at = time_of(created_at)
        except Exception:  # whatever a row contains; the error's text may include it
            yield SourceProblem(
                "The message cannot be read.", "Pass skip=True (--skip) to leave such a message out.", place
            )
            continue
        made.id = made.id or ids.message_id(table, session, row_id)
        yield SourceMessage(place, made, said_at)
