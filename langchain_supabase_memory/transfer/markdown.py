"""An export as Markdown: a file for each conversation, that a person reads and git compares.

What was said stands in quotations, so that nothing in it is taken for a heading or for somebody else's words. A message
that is added later changes nothing above it.
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
"""The most characters of a name within a file's name."""


class Markdown:
    """Markdown, in a folder with a file for each conversation, or one after the other in a file that is open.

    Args:
        target: The folder, which is made where there is none; or a binary file.

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
        """Markdown begins with the first conversation; what is not to be remembered is no part of it."""

    def conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any]) -> None:
        """Begin a conversation: its title and its ids."""
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
        """Write messages of it."""
        self._write("".join(map(_message, rows)))
        self.receipt.messages += len(rows)

    def superseded(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Nothing: what is read is what was said, and not what was taken back."""

    def edits(self, edits: Mapping[str, Any]) -> None:
        """Write what people noted on its board; it ends."""
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
        """Let what is open be written."""
        if self._out is not None:
            self._out.finish()

    def abandon(self) -> None:
        """Take away the file that was begun; those before it are whole."""
        if self._out is not None:
            self._out.abandon()

    def _write(self, text: str) -> None:
        assert self._out is not None
        before = self._out.written
        self._out.write(text.encode("utf-8", "replace"))
        self.receipt.bytes += self._out.written - before


def _message(row: Mapping[str, Any]) -> str:
    """A message: who and when, what was said, what was called, which media there were."""
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
    """A text in one line, in which nothing is markup."""
    return re.sub(r"([\\`*_{}\[\]<>#|])", r"\\\1", spell_out_lines(" ".join(text.split())))


def _code(text: str) -> str:
    """A text as code, however many backticks it holds."""
    shown = spell_out_lines(" ".join(text.split()))
    longest = max(map(len, re.findall("`+", shown)), default=0)
    fence = "`" * (longest + 1)
    room = " " if longest else ""
    return f"{fence}{room}{shown}{room}{fence}"


def _time(value: str) -> str:
    return datetime.fromisoformat(value).astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _file_name(agent_id: str, thread_id: str) -> str:
    """A name that every file system takes, and no other conversation of the user has."""
    told = sha256(f"{agent_id}\x1f{thread_id}".encode("utf-8", "surrogatepass")).hexdigest()[:8]
    words = _UNFIT.sub("-", thread_id).strip("-.")[:_LONGEST] or "conversation"
    return f"{words}-{told}.md"
