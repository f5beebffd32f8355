"""The columns of conversations and of their messages, in one table each: who takes a column along, and who shows it.

An export and an import read it, and so do the lists of columns that Supabase's Realtime publishes and that a reader of
messages may name. A column that the database has and that is not here fails a test, and so does one that is to be
carried and is lost.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Export: TypeAlias = Literal["carried", "derived", "left out"]
"""What an export does with a column: it has it, and an import puts it back; it is made anew there; or it stays here."""

_COUNTED: Final = "counted anew as messages are stored"
_SUMMARIZED: Final = "summaries are made anew; those that a person wrote are put back"
_INDEXED: Final = "indexed anew"
_GRAPH: Final = "the checkpoints of a graph are not taken along, so no graph goes on from an import"
_WORK: Final = "of the workers here"
_OWNER: Final = "an import says whose it is"
_ID: Final = "each database draws its own"


@dataclass(frozen=True)
class StoredColumn:
    """A column.

    Attributes:
        name: Its name.
        export: What an export does with it.
        reason: Why it is not carried; empty if it is.
        is_listed: Of a conversation, whether a list of conversations has it.
        is_live: Of a conversation, whether Realtime publishes it: it is of use to a page, and no error or content.
        is_read: Of a message, whether a reader may ask for it.
    """

    name: str
    export: Export
    reason: str = ""
    is_listed: bool = False
    is_live: bool = False
    is_read: bool = False


CONVERSATION_COLUMNS: Final = (
    StoredColumn("user_id", "left out", _OWNER, is_listed=True, is_live=True),
    StoredColumn("id", "left out", _ID, is_listed=True, is_live=True),
    StoredColumn("agent_id", "carried", is_listed=True, is_live=True),
    StoredColumn("thread_id", "carried", is_listed=True, is_live=True),
    StoredColumn("title", "carried", is_listed=True, is_live=True),
    StoredColumn("metadata", "carried", is_listed=True, is_live=True),
    StoredColumn("metadata_bytes", "derived", "the database weighs what is written"),
    StoredColumn("created_at", "carried", is_listed=True, is_live=True),
    StoredColumn("updated_at", "carried", is_listed=True, is_live=True),
    StoredColumn("archived_at", "derived", "archived again while it is idle", is_listed=True, is_live=True),
    StoredColumn("opted_out_at", "derived", "its opt-outs are carried", is_listed=True, is_live=True),
    StoredColumn("withheld", "derived", "its opt-outs are carried"),
    StoredColumn("next_sequence", "derived", _COUNTED, is_live=True),
    StoredColumn("message_count", "derived", _COUNTED, is_listed=True, is_live=True),
    StoredColumn("total_characters", "derived", _COUNTED),
    StoredColumn("total_tokens", "derived", _COUNTED),
    StoredColumn("revision", "left out", "counts the edits here, for what is computed meanwhile"),
    StoredColumn("expired_through", "left out", "what has expired is not exported"),
    StoredColumn("has_gone", "left out", "what was forgotten is not exported"),
    StoredColumn("branch_token", "left out", _GRAPH),
    StoredColumn("branch_from", "left out", _GRAPH),
    StoredColumn("graph_through", "left out", _GRAPH),
    StoredColumn("has_superseded", "left out", _GRAPH),
    StoredColumn("summarized_through", "derived", _SUMMARIZED, is_live=True),
    StoredColumn("summarized_characters", "derived", _SUMMARIZED),
    StoredColumn("summarized_tokens", "derived", _SUMMARIZED),
    StoredColumn("summary_failures", "left out", _WORK),
    StoredColumn("summary_retry_at", "left out", _WORK),
    StoredColumn("summary_error", "left out", _WORK),
    StoredColumn("indexed_through", "derived", _INDEXED, is_live=True),
    StoredColumn("chunk_count", "derived", _INDEXED),
    StoredColumn("has_stale", "derived", _INDEXED),
    StoredColumn("unembedded_from", "derived", _INDEXED),
    StoredColumn("speakers", "derived", _INDEXED),
    StoredColumn("language", "derived", _INDEXED),
    StoredColumn("index_failures", "left out", _WORK),
    StoredColumn("index_retry_at", "left out", _WORK),
    StoredColumn("index_error", "left out", _WORK),
    StoredColumn("priority", "left out", _WORK),
    StoredColumn("requested_at", "left out", _WORK, is_live=True),
    StoredColumn("served_at", "left out", _WORK, is_live=True),
)
"""Those of `memory.conversations`."""

MESSAGE_COLUMNS: Final = (
    StoredColumn("user_id", "left out", _OWNER),
    StoredColumn("conversation_id", "left out", _ID),
    StoredColumn("sequence", "derived", "numbered anew, in the same order"),
    StoredColumn("message_id", "carried", is_read=True),
    StoredColumn("role", "carried", is_read=True),
    StoredColumn("text", "carried", is_read=True),
    StoredColumn("characters", "carried", is_read=True),
    StoredColumn("tokens", "carried", is_read=True),
    StoredColumn("created_at", "carried", is_read=True),
    StoredColumn("updated_at", "left out", "tells that a message took the place of one that is gone", is_read=True),
    StoredColumn("metadata", "carried", is_read=True),
    StoredColumn("images", "carried", is_read=True),
    StoredColumn("payload", "carried", is_read=True),
    StoredColumn("bytes", "derived", "the database weighs what is written"),
    StoredColumn("final", "derived", "follows from the payload"),
    StoredColumn("unreadable", "derived", "noted again where somebody reads it", is_read=True),
    StoredColumn("parent", "left out", _GRAPH),
    StoredColumn("forked", "left out", _GRAPH),
)
"""Those of `memory.conversation_messages`."""

CARRIED: Final = tuple(each.name for each in CONVERSATION_COLUMNS if each.export == "carried")
"""What an export has of a conversation."""

MESSAGE_CARRIED: Final = tuple(each.name for each in MESSAGE_COLUMNS if each.export == "carried")
"""What an export has of a message."""

LIVE: Final = tuple(each.name for each in CONVERSATION_COLUMNS if each.is_live)
"""What Realtime publishes of a conversation."""
