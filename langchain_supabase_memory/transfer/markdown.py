"""Markdown export: a file for each conversation, for people to read and git to diff.

Message text is quoted, so that nothing in it can be mistaken for a heading or for another speaker. A new message
changes nothing above it.
"""

from __future__ import annotations

import os
import re
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.language.messages.invisible import spell_out_lines
from langchain_supabase_memory.language.messages.rendering import as_json
from langchain_supabase_memory.transfer.sinks import Output
from langchain_supabase_memory.transfer.values import ExportReceipt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SPEAKERS: Final = {"user": "User", "assistant": "Assistant", "system": "System", "tool": "Tool"}
_UNFIT: Final = re.compile(r"[^\w.-]+")
_LONGEST: Final = 60
"""The maximum length of a name within a file's name, in characters."""


class Markdown:
    """Writes Markdown, into a folder with a file for each conversation, or all into one open file.

    Args:
        target: The folder, which is created if it does not exist; or a binary file.

    Raises:
        InvalidInputError: It cannot be written.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self.receipt = ExportReceipt()
        self._folder: Path | None = None
        self._out: Output | None = None
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

    def conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any]) -> None:
        """Start a conversation: write its title and its ids."""
        if self._folder is not None:
            self._out = Output(self._folder / _file_name(row["agent_id"], row["thread_id"]))
        title = _line(edits["title"] or row["thread_id"])
        head = [f"# {title}", "", f"- thread: {_code(row['thread_id'])}", f"- agent: {_code(row['agent_id'])}"]
        head.append(f"- begun: {_time(edits['created_at'])}")
        if edits["metadata"]:
            head.append(f"- metadata: {_code(as_json(edits['metadata']))}")
        self._write("\n".join(head) + "\n")
        self.receipt.conversations += 1

    def messages(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of the conversation."""
        self._write("".join(map(_message, rows)))
        self.receipt.messages += len(rows)

    def superseded(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Do nothing: Markdown leaves out superseded messages."""

    def edits(self, edits: Mapping[str, Any]) -> None:
        """Write people's board notes, and end the conversation."""
        noted = [f"- {_line(item['text'])} ({item['kind']}, {item['state']})" for item in edits["items"]]
        summary = [_quoted(edits["summary"]["text"])] if edits["summary"] else []
        if noted or summary:
            self._write(
                "\n".join(["", "## Noted by people", "", *summary, *([""] if summary and noted else []), *noted, ""])
            )
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


def _message(row: Mapping[str, Any]) -> str:
    """Format a message: speaker, time, text, tool calls and media."""
    data = (row["payload"] or {}).get("data") or {}
    name = data.get("name")
    speaker = _line(content.speaker(_SPEAKERS[row["role"]], name if isinstance(name, str) else None))
    parts = [_quoted(row["text"])] if row["text"].strip() else []
    calls = data.get("tool_calls")
    for call in calls if isinstance(calls, list) else []:
        if isinstance(call, dict):
            parts.append(f"Calls {_code(str(call.get('name')))} with {_code(as_json(call.get('args')))}")
    for each in row["images"] or []:
        parts.append(f"Has {_code(str(each.get('kind')))}" + (f": {_code(each['url'])}" if each.get("url") else ""))
    return f"\n## {speaker}, {_time(row['created_at'])}\n\n" + "\n\n".join([*parts, ""] if parts else [""])


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}".rstrip() for line in spell_out_lines(text).splitlines())


def _line(text: str) -> str:
    """Format a text as one line without markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", spell_out_lines(" ".join(text.split())))


def _code(text: str) -> str:
    """Format a text as code, however many backticks it contains."""
    shown = spell_out_lines(" ".join(text.split()))
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    room = " " if longest else ""
    return f"{fence}{room}{shown}{room}{fence}"


def _time(value: str) -> str:
    return datetime.fromisoformat(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _file_name(agent_id: str, thread_id: str) -> str:
    """Return a file name that is valid on every file system, and unique among the user's conversations."""
    told = sha256(f"{agent_id}\x1f{thread_id}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    words = _UNFIT.sub("-", thread_id).strip("-.")[:_LONGEST] or "conversation"
    return f"{words}-{told}.md"
