"""Export targets: JSON Lines, or Markdown."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import mkstemp
from typing import TYPE_CHECKING, Any, BinaryIO, Final, Protocol

from langchain_supabase_memory import documents
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.columns import CARRIED
from langchain_supabase_memory.transfer.sources.jsonl import FORMAT
from langchain_supabase_memory.transfer.values import ExportReceipt

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.operations.boards.board import Board

_EDITS: Final = ("summary", "items", "deleted", "ratings", "summaries")


class Sink(Protocol):
    """Receives the conversations of an export, in order.

    Attributes:
        receipt: What was written so far.
        shows_boards: Whether it is to get the board of each conversation, which costs a call.
    """

    receipt: ExportReceipt
    shows_boards: bool

    def begin(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Write the user's settings for all conversations."""

    def conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any], board: Board | None) -> None:
        """Start a conversation."""

    def messages(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of the conversation."""

    def superseded(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write superseded messages, which a graph's fork left behind."""

    def edits(self, edits: Mapping[str, Any]) -> None:
        """Write what people set on the conversation, and end it."""

    def profile(self, items: Sequence[Mapping[str, Any]], consents: Sequence[Mapping[str, Any]]) -> None:
        """Write items of the user's profile, and what they allow to be derived."""

    def topics(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Write what a person made of topics."""

    def finish(self) -> None:
        """Finish: make the complete output available under its name."""

    def abandon(self) -> None:
        """Delete the unfinished output."""


def sink(target: str | os.PathLike[str] | BinaryIO, format: str) -> Sink:  # noqa: A002
    """Return the sink for a format and a target.

    Raises:
        InvalidInputError: The target cannot be written.
    """
    if format == "jsonl":
        return JsonLines(target)
    from langchain_supabase_memory.transfer.markdown import Markdown

    return Markdown(target)


class Output:
    """An output file that appears under its name only when it is complete, readable only by its owner; or an open file.

    Args:
        target: The file's path, or a binary file. A pipe or a device is written to, and never replaced by a file.

    Raises:
        InvalidInputError: It cannot be written.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self._path: Path | None = None
        self._opened: BinaryIO | None = None
        self.written = 0
        if not isinstance(target, str | os.PathLike):
            self._file = target
            return
        path = Path(target)
        try:
            if path.exists() and not path.is_file():
                self._file = self._opened = path.open("wb")
                return
            self._path = path
            # A new file with a random name: no attacker can have placed a link there, and no file mode is inherited.
            part, self._part = mkstemp(".part", f".{self._path.name[:40]}.", self._path.parent)
            self._file = os.fdopen(part, "wb")
        except OSError as error:
            raise InvalidInputError(
                f"The file cannot be written: {error.strerror}.", hint="Name a file in a folder that you may write to."
            ) from None

    def write(self, data: bytes) -> None:
        """Append data."""
        self._file.write(data)
        self.written += len(data)

    def finish(self) -> None:
        """Rename the file to its final name."""
        self._file.flush()
        if self._path is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._part, self._path)
            self._path = None
        elif self._opened is not None:
            self._opened.close()

    def abandon(self) -> None:
        """Delete the unfinished file."""
        if self._opened is not None:
            with suppress(OSError):
                self._opened.close()
        if self._path is not None:
            with suppress(OSError):
                self._file.close()
            Path(self._part).unlink(missing_ok=True)
            self._path = None


class JsonLines:
    """Writes JSON Lines, as `sources.jsonl` reads them.

    Args:
        target: The file.
    """

    shows_boards = False  # what people wrote on a board is among the edits, and an import makes the rest again

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self._out = Output(target)
        self.receipt = ExportReceipt()

    def begin(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Write the user's settings for all conversations."""
        self._line({"kind": "export", "format": FORMAT})
        if topics:
            self._line({"kind": "opt_outs", "opt_outs": topics})

    def conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any], board: Board | None) -> None:
        """Start a conversation."""
        carried = {name: edits[name] if name in edits else row[name] for name in CARRIED}
        self._line({"kind": "conversation", **carried, "opt_outs": edits["opt_outs"]})
        self.receipt.conversations += 1

    def messages(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of the conversation."""
        self.receipt.messages += self._messages("message", rows)

    def superseded(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write superseded messages, which a graph's fork left behind."""
        self.receipt.superseded += self._messages("superseded", rows)

    def _messages(self, kind: str, rows: Sequence[Mapping[str, Any]]) -> int:
        parts = []
        for row in rows:
            document = {"kind": kind, "id": row["message_id"], **row}
            del document["message_id"], document["sequence"]
            parts.append(documents.dumps(document))
        if parts:
            self._out.write(b"\n".join(parts) + b"\n")
        self.receipt.bytes = self._out.written
        return len(parts)

    def edits(self, edits: Mapping[str, Any]) -> None:
        """Write what people set on the conversation."""
        found = {name: edits[name] for name in _EDITS if edits[name]}
        if found:
            self._line({"kind": "edits", "edits": found})

    def profile(self, items: Sequence[Mapping[str, Any]], consents: Sequence[Mapping[str, Any]]) -> None:
        """Write items of the user's profile, and what they allow to be derived."""
        self._line({"kind": "profile", "profile": items, "consents": consents})

    def topics(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Write what a person made of topics."""
        self._line({"kind": "topics", "topics": topics})

    def finish(self) -> None:
        """Write the counts as the last line, so that a truncated file is detected."""
        counts = {"conversations": self.receipt.conversations, "messages": self.receipt.messages}
        self._line({"kind": "end", **counts})
        self._out.finish()

    def abandon(self) -> None:
        """Delete the unfinished file."""
        self._out.abandon()

    def _line(self, document: Mapping[str, Any]) -> None:
        self._out.write(documents.dumps(dict(document)) + b"\n")
        self.receipt.bytes = self._out.written
