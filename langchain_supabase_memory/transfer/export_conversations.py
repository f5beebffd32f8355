"""Export of conversations: reads pages and writes them as they come, sync and async."""

from __future__ import annotations

from datetime import datetime, timedelta
from functools import partial
from itertools import takewhile
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.effects import INLINE_LIMIT, Flow, call, offload
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations.arguments import retention_argument
from langchain_supabase_memory.operations.boards.board import read_board
from langchain_supabase_memory.operations.columns import MESSAGE_CARRIED
from langchain_supabase_memory.operations.pages import PAGE
from langchain_supabase_memory.operations.profile import export_page
from langchain_supabase_memory.operations.topics import edited_topics
from langchain_supabase_memory.transfer.sinks import sink
from langchain_supabase_memory.values import ConversationKey

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Mapping, Sequence
    from typing import BinaryIO

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.transfer.sinks import Sink
    from langchain_supabase_memory.transfer.values import ExportReceipt

Format = Literal["jsonl", "markdown"]

_CONVERSATIONS: Final = 100
"""The number of conversations listed at once."""

_AT_ONCE: Final = 50
"""The number of short conversations read at once."""

_SHORT: Final = 100
"""The maximum number of messages in a short conversation."""

_ITEMS: Final = 1000
"""The maximum number of items of a board."""

_TOPICS: Final = 50
"""The number of topics in a line."""

_MEANWHILE: Final = timedelta(minutes=5)
"""Changes made this shortly before the export may be committed only after the conversations were listed."""


def export_conversations(
    memory: SupabaseMemory,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    format: Format = "jsonl",  # noqa: A002
    agent_id: str | None = None,
    thread_id: str | None = None,
    progress: Callable[[ExportReceipt], None] | None = None,
) -> ExportReceipt:
    """Write a user's conversations to a file as they are read, with constant memory use.

    The JSON Lines format is lossless: messages with their metadata and times, titles, opt-outs, and what people wrote,
    pinned, rated or deleted; without `agent_id` and `thread_id` also the user's profile, and the topics that a person
    named, hid or merged. Derived data is created again at import. A file appears under its name only when it is
    complete. In the Markdown format each conversation is a file in a folder, for people and for git: its summary and
    its board, its messages by day with tools folded, its ids.

    Private conversations are left out: nothing of them lasts longer than a day.

    With a user's own token row level security limits the export to that user's rows. Messages past retention are left
    out. Messages that a graph's fork left behind are on no branch: they are not written to Markdown, and an import
    leaves them out. A conversation that changes during the export may appear twice; an import stores each message once.
    The async twin writes the file in threads.

    Args:
        memory: The memory.
        target: The file; for Markdown the folder. Or a binary file that is open for writing.
        format: `jsonl` or `markdown`.
        agent_id: Only conversations with this agent; by default with all.
        thread_id: Only this thread.
        progress: Called with the receipt so far, after each page.

    Returns:
        How much was written.

    Raises:
        InvalidInputError: The owner is unknown, or the file cannot be written.
        SupabaseMemoryError: The database refused or could not be reached; no file is left.
    """
    return require_memory(memory)._services.run(_flow(memory, target, format, agent_id, thread_id, progress))


async def aexport_conversations(
    memory: SupabaseMemory,
    target: str | os.PathLike[str] | BinaryIO,
    *,
    format: Format = "jsonl",  # noqa: A002
    agent_id: str | None = None,
    thread_id: str | None = None,
    progress: Callable[[ExportReceipt], None] | None = None,
) -> ExportReceipt:
    """The async twin of `export_conversations`."""
    return await require_memory(memory)._services.arun(_flow(memory, target, format, agent_id, thread_id, progress))


def _flow(
    memory: SupabaseMemory,
    target: str | os.PathLike[str] | BinaryIO,
    format: Format,  # noqa: A002
    agent_id: str | None,
    thread_id: str | None,
    progress: Callable[[ExportReceipt], None] | None,
) -> Flow[ExportReceipt]:
    choice("format", format, ("jsonl", "markdown"))
    owner = memory._services.owner()
    only = {"p_user_id": owner, "p_agent_id": agent_id, "p_thread_id": thread_id}
    made: Sink = yield from offload(lambda: sink(target, format), INLINE_LIMIT)
    try:
        exporting = _Exporter(made, memory._services.settings.retention, progress)
        yield from exporting.all(only)
        yield from offload(made.finish, INLINE_LIMIT)
    finally:
        made.abandon()
    return made.receipt


class _Exporter:
    """Runs one export."""

    def __init__(
        self, sink: Sink, retention: Retention | None, progress: Callable[[ExportReceipt], None] | None
    ) -> None:
        self._sink = sink
        self._board_retention = retention
        self._retention = retention_argument(retention)
        self._progress = progress

    def all(self, filters: Mapping[str, Any]) -> Flow[None]:
        """Write the user's settings, then each conversation; conversations that changed meanwhile are written again."""
        listed = yield from call("memory_opt_outs", {"p_user_id": filters["p_user_id"], "p_agent_id": None})
        topics = [{"topic": e["topic"], "by": e["by"], "at": e["at"]} for e in listed if e["thread_id"] is None]
        yield from offload(lambda: self._sink.begin(topics), INLINE_LIMIT)
        recent: dict[str, str] = {}
        since = yield from self._pages(filters, None, recent)
        if since is not None:
            yield from self._pages({**filters, "p_since": since}, recent, recent)
        is_all = filters["p_agent_id"] is None and filters["p_thread_id"] is None
        if is_all and not str(filters["p_user_id"]).startswith("space:"):  # a space has no profile
            yield from self._profile(filters["p_user_id"])
            yield from self._topics(filters["p_user_id"])

    def _profile(self, user_id: str) -> Flow[None]:
        """Write the user's profile, by pages, and what they allow to be derived."""
        after: Mapping[str, Any] | None = None
        while True:
            page, after = yield from export_page(user_id, after)
            items, consents = page["profile"], page["consents"]
            if items or consents:
                yield from offload(partial(self._sink.profile, items, consents), INLINE_LIMIT)
            if after is None:
                return

    def _topics(self, user_id: str) -> Flow[None]:
        """Write what a person made of topics, a few in a line."""
        topics = yield from edited_topics(user_id, self._retention)
        for first in range(0, len(topics), _TOPICS):
            yield from offload(partial(self._sink.topics, topics[first : first + _TOPICS]), INLINE_LIMIT)

    def _pages(
        self, filters: Mapping[str, Any], previous: Mapping[str, str] | None, recent: dict[str, str]
    ) -> Flow[str | None]:
        """Write all conversations of a list, except those already written in their current state.

        Returns:
            From when on something may have changed meanwhile; `None` if there is no conversation.
        """
        after: str | None = None
        since: datetime | None = None
        while True:
            page = yield from call(
                "memory_conversations",
                {**filters, "p_limit": _CONVERSATIONS, "p_after": after, "p_retention": self._retention},
            )
            wanted = []
            for row in page["conversations"]:
                changed = datetime.fromisoformat(row["updated_at"])
                since = since or changed - _MEANWHILE
                if not row["private"] and (previous is None or previous.get(row["id"]) != row["updated_at"]):
                    wanted.append(row)
                if changed >= since:
                    recent[row["id"]] = row["updated_at"]
            yield from self._conversations(wanted)
            after = page["after"]
            if after is None:
                return None if since is None else since.isoformat()

    def _conversations(self, rows: Sequence[Mapping[str, Any]]) -> Flow[None]:
        """Write conversations; short ones are read several at once, as many as fit into one response."""
        left = list(rows)
        while left:
            if left[0]["message_count"] > _SHORT:
                row = left.pop(0)
                edits = yield from call("memory_edits", {**_ids(row), "p_retention": self._retention})
                if edits is not None:  # otherwise it was forgotten meanwhile
                    yield from self._conversation(row, edits, (yield from self._page(row, 0)))
                continue
            short = list(takewhile(lambda row: row["message_count"] <= _SHORT, left[:_AT_ONCE]))
            answers = yield from call(
                "memory_export",
                {
                    "p_conversations": [{"thread_id": row["thread_id"], "agent_id": row["agent_id"]} for row in short],
                    "p_user_id": left[0]["user_id"],
                    "p_columns": [*MESSAGE_CARRIED],
                    "p_retention": self._retention,
                },
            )
            for row, answer in zip(short, answers, strict=False):
                if answer["edits"] is not None:
                    yield from self._conversation(row, answer["edits"], answer["page"])
            left = left[len(answers) :]

    def _page(self, row: Mapping[str, Any], first: int, *, superseded: bool = False) -> Flow[Mapping[str, Any]]:
        """Read messages of a conversation from a sequence on."""
        wanted = {"p_from": first, "p_limit": PAGE, "p_columns": [*MESSAGE_CARRIED], "p_superseded": superseded}
        page: Mapping[str, Any] = yield from call(
            "memory_read", {**_ids(row), **wanted, "p_retention": self._retention}
        )
        return page

    def _conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any], page: Mapping[str, Any]) -> Flow[None]:
        """Write a conversation whose first page was read."""
        board = None
        if self._sink.shows_boards:
            key = ConversationKey(thread_id=row["thread_id"], user_id=row["user_id"], agent_id=row["agent_id"])
            board = yield from read_board(key, limit=_ITEMS, retention=self._board_retention)
        yield from offload(lambda: self._sink.conversation(row, edits, board), INLINE_LIMIT)
        while True:
            messages = page["messages"]
            yield from offload(lambda page=messages: self._sink.messages(page), INLINE_LIMIT)  # type: ignore[misc]
            if self._progress is not None:
                self._progress(self._sink.receipt)
            if not page["more"] or not messages:
                break
            page = yield from self._page(row, messages[-1]["sequence"] + 1)
        first = 0
        while edits["superseded"]:
            page = yield from self._page(row, first, superseded=True)
            messages = page["messages"]
            yield from offload(lambda page=messages: self._sink.superseded(page), INLINE_LIMIT)  # type: ignore[misc]
            if not page["more"] or not messages:
                break
            first = messages[-1]["sequence"] + 1
        yield from offload(lambda: self._sink.edits(edits), INLINE_LIMIT)


def _ids(row: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments that identify a listed conversation to SQL functions."""
    return {"p_user_id": row["user_id"], "p_agent_id": row["agent_id"], "p_thread_id": row["thread_id"]}
