"""The columns of conversations and messages, in one table each: which are exported and which are readable.

Exports and imports use the tables, and so do the column lists that Supabase Realtime publishes and that readers of
messages may request. A test fails if a database column is missing here, or if an export loses a carried column.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

Export: TypeAlias = Literal["carried", "derived", "left out"]
"""How an export treats a column: it includes it, the import recomputes it, or it leaves it out."""

_COUNTED: Final = "recounted as messages are stored"
_SUMMARIZED: Final = "summaries are regenerated; those that a person wrote are restored"
_INDEXED: Final = "indexed again"
_GRAPH: Final = "graph checkpoints are not exported, so no graph can resume from an import"
_WORK: Final = "state of the workers of this database"
_OWNER: Final = "the import names the owner"
_ID: Final = "each database generates its own"


@dataclass(frozen=True)
class StoredColumn:
    """A stored column.

    Attributes:
        name: The column's name.
        export: How an export treats it.
        reason: Why it is not carried; empty if it is carried.
        is_listed: For a conversation, whether lists of conversations include it.
        is_live: For a conversation, whether Realtime publishes it: useful to a page, and neither an error nor
            content.
        is_read: For a message, whether a reader may request it.
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
    StoredColumn("metadata_bytes", "derived", "the database measures what is written"),
    StoredColumn("created_at", "carried", is_listed=True, is_live=True),
    StoredColumn("updated_at", "carried", is_listed=True, is_live=True),
    StoredColumn("updated_hour", "derived", "follows from the time of the last change"),
    StoredColumn("updated_before", "left out", "takes back an append that stored nothing"),
    StoredColumn("archived_at", "derived", "archived again while it is idle", is_listed=True, is_live=True),
    StoredColumn("opted_out_at", "derived", "its opt-outs are carried", is_listed=True, is_live=True),
    StoredColumn("private", "left out", "private conversations are not exported", is_listed=True, is_live=True),
    StoredColumn("withheld", "derived", "its opt-outs are carried"),
    StoredColumn("next_sequence", "derived", _COUNTED, is_live=True),
    StoredColumn("message_count", "derived", _COUNTED, is_listed=True, is_live=True),
    StoredColumn("total_characters", "derived", _COUNTED),
    StoredColumn("total_tokens", "derived", _COUNTED),
    StoredColumn("revision", "left out", "counts edits in this database, for concurrent computations"),
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
    StoredColumn("signals", "derived", _INDEXED, is_listed=True),
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
"""The columns of `memory.conversations`."""

MESSAGE_COLUMNS: Final = (
    StoredColumn("user_id", "left out", _OWNER),
    StoredColumn("conversation_id", "left out", _ID),
    StoredColumn("sequence", "derived", "renumbered, in the same order"),
    StoredColumn("message_id", "carried", is_read=True),
    StoredColumn("role", "carried", is_read=True),
    StoredColumn("text", "carried", is_read=True),
    StoredColumn("characters", "carried", is_read=True),
    StoredColumn("tokens", "carried", is_read=True),
    StoredColumn("created_at", "carried", is_read=True),
    StoredColumn("updated_at", "left out", "marks a message that replaced a deleted one", is_read=True),
    StoredColumn("metadata", "carried", is_read=True),
    StoredColumn("images", "carried", is_read=True),
    StoredColumn("payload", "carried", is_read=True),
    StoredColumn("bytes", "derived", "the database measures what is written"),
    StoredColumn("final", "derived", "follows from the payload"),
    StoredColumn("unreadable", "derived", "recorded again when it is read", is_read=True),
    StoredColumn("parent", "left out", _GRAPH, is_read=True),
    StoredColumn("forked", "left out", _GRAPH),
    StoredColumn("question", "left out", _GRAPH),
    StoredColumn("author_id", "left out", "a server names the authors of what it brings into a space", is_read=True),
)
"""The columns of `memory.conversation_messages`."""

CARRIED: Final = tuple(each.name for each in CONVERSATION_COLUMNS if each.export == "carried")
"""The exported columns of a conversation."""

MESSAGE_CARRIED: Final = tuple(each.name for each in MESSAGE_COLUMNS if each.export == "carried")
"""The exported columns of a message."""

LIVE: Final = tuple(each.name for each in CONVERSATION_COLUMNS if each.is_live)
"""The conversation columns that Realtime publishes."""
