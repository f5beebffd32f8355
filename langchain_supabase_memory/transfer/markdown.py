"""Markdown export: a file for each conversation, for people to read and git to diff.

The summary and the board come first, then the messages by day, then the ids. Message text is quoted, so that nothing in
it can be mistaken for a heading or for another speaker. A new message changes no message above it.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from hashlib import sha256
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.language.messages.rendering import as_json
from langchain_supabase_memory.operations.boards.kinds import SENTENCES_FIRST
from langchain_supabase_memory.transfer.markdown_text import code_block, code_span, plain_line, quoted
from langchain_supabase_memory.transfer.sinks import Output
from langchain_supabase_memory.transfer.values import ExportReceipt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import date

    from langchain_supabase_memory.operations.boards.board import Board, BoardItem

_SPEAKERS: Final = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_UNFIT: Final = re.compile(r"[^\w.-]+")
_MAX_PLACES: Final = 5
"""The maximum number of messages that are named as an item's evidence."""

_LONGEST: Final = 60
"""The maximum length of a name within a file's name, in characters."""


class Markdown:
    """Writes Markdown, into a folder with a file for each conversation, or all into one open file.

    Args:
        target: The folder, which is created if it does not exist; or a binary file.

    Raises:
        InvalidInputError: It cannot be written.
    """

    shows_boards = True

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self.receipt = ExportReceipt()
        self._folder: Path | None = None
        self._out: Output | None = None
        self._day: date | None = None
        self._ids: list[str] = []
        if not isinstance(target, str | os.PathLike):
            self._out = Output(target)
            return
        self._folder = Path(target)
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise InvalidInputError(
                f"The folder cannot be made: {error.strerror}.",
                hint="Name a folder; Markdown is a file a conversation.",
            ) from None

    def begin(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing: Markdown starts with the first conversation, and opt-out topics are not part of it."""

    def profile(self, items: Sequence[Mapping[str, Any]], consents: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing: the profile is no part of a conversation."""

    def topics(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing: topics are no part of a conversation."""

    def conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any], board: Board | None) -> None:
        """Start a conversation: write its title, its summary and its board."""
        if self._folder is not None:
            self._out = Output(self._folder / _file_name(row["agent_id"], row["thread_id"]))
        self._day = None
        self._ids = [
            f"- Thread: {code_span(row['thread_id'])}",
            f"- Agent: {code_span(row['agent_id'])}",
            f"- Begun: {_moment(edits['created_at']):%Y-%m-%d %H:%M:%S} UTC",
        ]
        if edits["metadata"]:
            self._ids.append(f"- Metadata: {code_span(as_json(edits['metadata']))}")
        title = plain_line(edits["title"] or row["title"] or row["thread_id"])
        self._write(f"# {title}\n" + ("" if board is None else _board(board)))
        self.receipt.conversations += 1

    def messages(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of the conversation, below the days on which they were said."""
        for row in rows:
            at = _moment(row["created_at"])
            if at.date() != self._day:
                self._day = at.date()
                self._write(f"\n## {at:%A}, {at.day} {at:%B %Y}\n")
            self._write(_message(row, at))
        self.receipt.messages += len(rows)

    def superseded(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing: Markdown leaves out superseded messages."""

    def edits(self, edits: Mapping[str, Any]) -> None:
        """End the conversation with its ids. What people wrote stands on its board."""
        times = "Times are in UTC. The number in brackets is that of the message."
        self._write("\n".join(["", "---", "", times, "", *self._ids, ""]))
        if self._folder is not None and self._out is not None:
            self._out.finish()
            self._out = None

    def finish(self) -> None:
        """Finish the open file."""
        if self._out is not None:
            self._out.finish()

    def abandon(self) -> None:
        """Delete the unfinished file; earlier files are complete."""
        if self._out is not None:
            self._out.abandon()

    def _write(self, text: str) -> None:
        assert self._out is not None
        before = self._out.written
        self._out.write(text.encode("utf-8", "replace"))
        self.receipt.bytes += self._out.written - before


def _board(board: Board) -> str:
    """Format a board: a person's note, the summary, and the items that hold, each with its messages."""
    parts = []
    for heading, text in (("Note", board.edited_summary), ("Summary", board.summary)):
        if text:
            parts.append(f"\n## {heading}\n\n{quoted(text)}\n")
    sections = [(kind.heading, board.of_kind(kind.kind)) for kind in SENTENCES_FIRST]
    if any(items for _, items in sections):
        parts.append("\n## Board\n")
    for heading, items in sections:
        if items:
            parts.append(f"\n### {heading}\n\n" + "".join(map(_item, items)))
    if board.unlisted:
        parts.append(f"\n{board.unlisted:,} more items are on the board.\n")
    return "".join(parts)


def _item(item: BoardItem) -> str:
    notes = [item.type, "pinned" if item.pinned else None, item.written_by]
    marks = ", ".join(each for each in notes if each)
    places = ", ".join(map(str, item.sequences[:_MAX_PLACES]))
    return f"- {plain_line(item.text)}{f' ({marks})' if marks else ''}{_number(places) if places else ''}\n"


def _message(row: Mapping[str, Any], at: datetime) -> str:
    """Format a message: speaker, time and number; its text; its media; its tool calls, folded."""
    data = (row["payload"] or {}).get("data") or {}
    name = data.get("name")
    speaker = content.speaker(_SPEAKERS[row["role"]], name if isinstance(name, str) else None)
    place = f"{at:%H:%M}{_number(row['sequence'])}"
    if row["role"] == "tool":
        return f"\n{_folded(f'{speaker}, {place}', code_block(row['text']))}"
    parts = [f"**{plain_line(speaker)}**, {place}", *([quoted(row["text"])] if row["text"].strip() else [])]
    for each in row["images"] or []:
        address = f": {code_span(each['url'])}" if each.get("url") else ""
        parts.append(f"Has {code_span(str(each.get('kind')))}{address}")
    calls = data.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            parts.append(_folded(f"Calls {call.get('name')}", code_block(as_json(call.get("args")), "json")).rstrip())
    return "\n" + "\n\n".join(parts) + "\n"


def _folded(summary: str, body: str) -> str:
    """Format what a reader opens to see."""
    line = escape(spell_out(" ".join(summary.split())))
    return f"<details><summary>{line}</summary>\n\n{body}\n\n</details>\n"


def _number(sequence: object) -> str:
    """Format the number of a message. No link is made of it: definitions of links are escaped in what was said."""
    return f" [{sequence}]"


def _moment(value: str) -> datetime:
    return datetime.fromisoformat(value).astimezone(UTC)


def _file_name(agent_id: str, thread_id: str) -> str:
    """Return a file name that is valid on every file system, and unique among the user's conversations."""
    told = sha256(f"{agent_id}\x1f{thread_id}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    words = _UNFIT.sub("-", thread_id).strip("-.")[:_LONGEST] or "conversation"
    return f"{words}-{told}.md"
