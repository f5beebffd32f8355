"""Where an export goes: JSON in lines, or Markdown."""

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

_EDITS: Final = ("summary", "items", "deleted", "ratings", "summaries")


class Sink(Protocol):
    """What conversations are written to, in order."""

    receipt: ExportReceipt

    def begin(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Write what concerns all conversations."""

    def conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any]) -> None:
        """Begin a conversation."""

    def messages(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of it."""

    def superseded(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of it that a graph has left."""

    def edits(self, edits: Mapping[str, Any]) -> None:
        """Write what people set of it; it ends."""

    def finish(self) -> None:
        """Everything was written: let it stand under its name."""

    def abandon(self) -> None:
        """Take back what was not finished."""


def sink(target: str | os.PathLike[str] | BinaryIO, format: str) -> Sink:  # noqa: A002
    """What writes a format to a target.

    Raises:
        InvalidInputError: The target cannot be written.
    """
    if format == "jsonl":
        return JsonLines(target)
    from langchain_supabase_memory.transfer.markdown import Markdown

    return Markdown(target)


class Output:
    """A file that stands under its name when it is whole, and can be read by its owner alone; or one that is open.

    Args:
        target: The file's path, or a binary file.

    Raises:
        InvalidInputError: It cannot be written.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self._path: Path | None = None
        self.written = 0
        if not isinstance(target, str | os.PathLike):
            self._file = target
            return
        self._path = Path(target)
        try:
            # A new file of an unknown name: nobody can have planted a link there, and no mode is taken over.
            part, self._part = mkstemp(".part", f".{self._path.name[:40]}.", self._path.parent)
            self._file = os.fdopen(part, "wb")
        except OSError as error:
            raise InvalidInputError(
                f"The file cannot be written: {error.strerror}.", hint="Name a file in a folder that you may write to."
            ) from None

    def write(self, data: bytes) -> None:
        """Write on."""
        self._file.write(data)
        self.written += len(data)

    def finish(self) -> None:
        """Let it stand under its name."""
        self._file.flush()
        if self._path is not None:
            os.fsync(self._file.fileno())
            self._file.close()
            os.replace(self._part, self._path)
            self._path = None

    def abandon(self) -> None:
        """Take away what was not finished."""
        if self._path is not None:
            with suppress(OSError):
                self._file.close()
            Path(self._part).unlink(missing_ok=True)
            self._path = None


class JsonLines:
    """JSON in lines, as `sources.jsonl` reads them.

    Args:
        target: The file.
    """

    def __init__(self, target: str | os.PathLike[str] | BinaryIO) -> None:
        self._out = Output(target)
        self.receipt = ExportReceipt()

    def begin(self, topics: Sequence[Mapping[str, Any]]) -> None:
        """Write what concerns all conversations."""
        self._line({"kind": "export", "format": FORMAT})
        if topics:
            self._line({"kind": "opt_outs", "opt_outs": topics})

    def conversation(self, row: Mapping[str, Any], edits: Mapping[str, Any]) -> None:
        """Begin a conversation."""
        carried = {name: edits[name] if name in edits else row[name] for name in CARRIED}
        self._line({"kind": "conversation", **carried, "opt_outs": edits["opt_outs"]})
        self.receipt.conversations += 1

    def messages(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of it."""
        self.receipt.messages += self._messages("message", rows)

    def superseded(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Write messages of it that a graph has left."""
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
        """Write what people set of it."""
        found = {name: edits[name] for name in _EDITS if edits[name]}
        if found:
            self._line({"kind": "edits", "edits": found})

    def finish(self) -> None:
        """Say how much there was, so that half a file is known by its missing end."""
        counts = {"conversations": self.receipt.conversations, "messages": self.receipt.messages}
        self._line({"kind": "end", **counts})
        self._out.finish()

    def abandon(self) -> None:
        """Take back what was not finished."""
        self._out.abandon()

    def _line(self, document: Mapping[str, Any]) -> None:
        self._out.write(documents.dumps(dict(document)) + b"\n")
        self.receipt.bytes = self._out.written
