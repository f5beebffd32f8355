"""Reads files as lines, or as the conversations of one JSON document, converted from any encoding to UTF-8.

Only the current line or conversation is held in memory.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import sys
import zipfile
import zlib
from contextlib import contextmanager
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO, Final, cast

from langchain_supabase_memory.errors import InvalidInputError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

STANDARD_INPUT: Final = "-"
"""The path that stands for the standard input."""

LONGEST: Final = 64 * 1024 * 1024
"""The maximum size of a line, or of a conversation within a document, in bytes."""

MAX_VALUES: Final = 4_000_000
"""The maximum number of JSON values in a conversation: the smallest ones take many times their bytes in memory."""

DEEPEST: Final = 200
"""The maximum depth of a document; stored messages have at most 120 levels."""

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # begins like the mark of UTF-16
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_GZIP: Final = b"\x1f\x8b"
_ENCODING_HINT: Final = "Name what it is written in, such as encoding='latin-1' (--encoding latin-1)."
_WHICH: Final = "Name the file conversations.json of the export, or the archive as it was downloaded."
_DAMAGED: Final = (zipfile.BadZipFile, zlib.error, EOFError, RuntimeError, NotImplementedError, OSError)
"""Exceptions of reading an archive: it is damaged, encrypted, or uses a compression that Python lacks."""

_LINES_HINT: Final = "A line holds one document: is this JSON in lines?"
_STRINGS_AND_SIGNS: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"?|[,\[{]', re.DOTALL)
_HALF: Final = "Export or download the file again: what is missing at its end was never written."


@contextmanager
def utf8(path: str | os.PathLike[str], encoding: str | None) -> Iterator[BinaryIO]:
    """Open a file as UTF-8 bytes, without a byte order mark.

    Args:
        path: The file; `-` for the standard input.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.

    Raises:
        InvalidInputError: There is no such file or encoding, or the file is compressed.
    """
    with _open(path) as file, _recoded(file, encoding) as stream:
        yield stream


def _open(path: str | os.PathLike[str]) -> BinaryIO:
    if os.fspath(path) == STANDARD_INPUT:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise InvalidInputError(
            f"The file cannot be opened: {error.strerror}.", hint="Name a file that you may read."
        ) from None


@contextmanager
def _recoded(stream: Any, encoding: str | None) -> Iterator[BinaryIO]:
    """Recode a stream to UTF-8 bytes; arguments as for `utf8`."""
    start = stream.peek(4)[:4]
    if start.startswith(_GZIP):
        raise InvalidInputError(
            "The file is compressed by gzip.", hint="Unpack it, by gunzip, and name what comes out."
        )
    mark, found = next(((mark, name) for mark, name in _MARKS if start.startswith(mark)), (b"", _without_mark(start)))
    stream.read(len(mark))
    name = encoding or found
    try:
        codecs.lookup(name)
    except LookupError:
        raise InvalidInputError("There is no such encoding.", hint=_ENCODING_HINT) from None
    if codecs.lookup(name).name == "utf-8":
        yield cast("BinaryIO", stream)
        return
    # Only "\n" ends a line, because other line separators may occur within a document.
    with io.TextIOWrapper(stream, encoding=name, newline="\n") as reader:
        yield cast("BinaryIO", _Recoded(reader))


class _Recoded:
    """A text stream as UTF-8 bytes."""

    def __init__(self, reader: io.TextIOWrapper) -> None:
        self._reader = reader
        self._left = b""

    def read(self, size: int = -1) -> bytes:
        if size == 0:
            return b""
        if not self._left:
            self._left = self._encode(lambda: self._reader.read(size))
        found, self._left = (self._left, b"") if size < 0 else (self._left[:size], self._left[size:])
        return found

    def readline(self, size: int) -> bytes:
        return self._encode(lambda: self._reader.readline(size))

    def _encode(self, read: Callable[[], str]) -> bytes:
        try:
            return read().encode("utf-8", "surrogatepass")
        except UnicodeError:
            raise encoding_error("the file") from None


def lines(path: str | os.PathLike[str], encoding: str | None) -> Iterator[tuple[int, bytes]]:
    """Return the nonblank lines of a file, with their numbers from 1.

    Raises:
        InvalidInputError: A line exceeds the maximum size of a conversation, or the maximum number of its values.
    """
    with utf8(path, encoding) as file:
        number = 0
        while line := file.readline(LONGEST + 1):
            number += 1
            if len(line) > LONGEST:
                raise InvalidInputError(
                    f"line {number}: It has more than {LONGEST >> 20} MiB.",
                    hint=_LINES_HINT,
                )
            check_values(line, f"line {number}: It", _LINES_HINT)
            if line.strip():
                yield number, line


def check_values(text: bytes, name: str, hint: str) -> None:
    """Check how many values a JSON document has, before it is parsed: the smallest take many times their bytes then.

    Raises:
        InvalidInputError: There are more than `MAX_VALUES`.
    """
    # Each value follows one of three signs. Only where there are many, those within strings are told apart.
    if sum(map(text.count, (b",", b"[", b"{"))) <= MAX_VALUES:
        return
    signs = (found for found in _STRINGS_AND_SIGNS.finditer(text) if text[found.start()] != ord('"'))
    if next(islice(signs, MAX_VALUES, None), None) is not None:
        raise InvalidInputError(f"{name} has more than {MAX_VALUES:,} values.", hint=hint)


def conversations(path: str | os.PathLike[str], encoding: str | None, name: str) -> Iterator[tuple[int, Any]]:
    """Yield the elements of a JSON document's list, with their numbers from 1.

    A document that is one object counts as a list of one. In a folder or a ZIP archive the document may be split into
    several files, such as `conversations-000.json` and `conversations-001.json`, which are read in order.

    Args:
        path: The document, or the folder or the archive that contains it.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.
        name: The name of the document in a folder or an archive, such as `conversations.json`.

    Raises:
        InvalidInputError: The file is not valid JSON, is truncated, is not UTF-8, or is missing.
        MissingDependencyError: `ijson` is not installed.
    """
    number = 0
    for stream in _documents(Path(path), name):
        with _recoded(stream, encoding) as file:
            for each in _read(file, number):
                number += 1
                yield number, each


def _read(file: BinaryIO, number: int) -> Iterator[Any]:
    """Yield the elements of one document; `number` is the count of elements in earlier ones."""
    try:
        import ijson
    except ImportError:
        raise MissingDependencyError("Reading a large JSON document", "transfer") from None
    counted = _SizeLimitedFile(file)
    found = _elements(ijson.basic_parse(cast("BinaryIO", counted), use_float=True), counted)
    while True:
        place = f"after conversation {number}" if number else "at its beginning"
        try:
            each = next(found, None)
        except ijson.JSONError as error:
            if "UTF" in str(error):
                raise encoding_error(place) from None
            if "premature" in str(error) or (isinstance(error, ijson.IncompleteJSONError) and "EOF" in str(error)):
                raise InvalidInputError(f"The file ends in the middle, {place}.", hint=_HALF) from None
            raise InvalidInputError(f"The file is no JSON, {place}.", hint=_WHICH) from None
        except UnicodeError:
            raise encoding_error(place) from None
        except _DeepError:
            raise InvalidInputError(f"The file is nested too deeply, {place}.", hint=_WHICH) from None
        except _LargeError:
            raise InvalidInputError(
                f"A conversation has more than {LONGEST >> 20} MiB, {place}.", hint=_WHICH
            ) from None
        except _DAMAGED:
            raise _unpack(place) from None
        if each is None:
            return
        number += 1
        yield each


class _DeepError(Exception):
    """A document is nested more deeply than any export."""


class _LargeError(Exception):
    """A conversation is larger than the maximum."""


class _SizeLimitedFile:
    """A file that fails if more bytes are read for one conversation than the maximum."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._bytes = 0
        self._values = 0

    def read(self, size: int = -1) -> bytes:
        if size > 0:
            # The parser rescans an unfinished string from its start, so each read is as long as everything before it.
            size = min(max(size, self._bytes), LONGEST + 1 - self._bytes)
        found = self._file.read(size)
        self._bytes += len(found)
        if self._bytes > LONGEST:
            raise _LargeError
        return found

    def count(self) -> None:
        """Count a value."""
        self._values += 1
        if self._values > MAX_VALUES:
            raise _LargeError

    def begin(self) -> None:
        """Start another conversation."""
        self._bytes = self._values = 0


def _elements(events: Iterator[tuple[str, Any]], counted: _SizeLimitedFile) -> Iterator[Any]:
    """Yield the elements of a document's list, or the document itself if it is not a list, from parser events.

    Raises:
        _DeepError: The document is nested too deeply.
        _LargeError: An element is too large.
    """
    stack: list[Any] = []
    names: list[str] = []
    least: int | None = None  # the stack depth of the list itself
    for kind, value in events:
        counted.count()
        if least is None:
            least = 1 if kind == "start_array" else 0
            if least:
                stack.append(None)
                names.append("")
                continue
        if kind == "map_key":
            names[-1] = value
            continue
        if kind in ("end_map", "end_array"):
            names.pop()
            made = stack.pop()
            if len(stack) > least:
                continue
            if made is not None:
                yield made
                counted.begin()
            continue
        is_nested = kind in ("start_map", "start_array")
        made = {} if kind == "start_map" else [] if kind == "start_array" else value
        if len(stack) > least:
            above = stack[-1]
            if isinstance(above, dict):
                above[names[-1]] = made
            else:
                above.append(made)
        elif not is_nested:
            yield made if made is not None else {}
            counted.begin()
        if is_nested:
            if len(stack) >= DEEPEST:
                raise _DeepError
            stack.append(made)
            names.append("")


def encoding_error(place: str) -> InvalidInputError:
    """Return the error for bytes that are not UTF-8."""
    return InvalidInputError(f"{place}: The text is not written in UTF-8.", hint=_ENCODING_HINT)


def _documents(path: Path, name: str) -> Iterator[Any]:
    """Open the files of a document one at a time: of a folder, of an archive, or the file itself."""
    if path.is_dir():
        held = {each.relative_to(path).as_posix(): each for each in (*path.glob("*.json"), *path.glob("*/*.json"))}
        for each in _parts(held, name, "folder"):
            with _open(held[each]) as file:
                yield file
        return
    with _open(path) as file:
        if not cast("io.BufferedReader", file).peek(4).startswith(b"PK\x03\x04"):
            yield file
            return
        if not file.seekable():
            raise InvalidInputError("An archive cannot be read from a pipe.", hint="Name the archive as a file.")
        try:
            archive = zipfile.ZipFile(file)
        except _DAMAGED:
            raise _unpack("at its beginning") from None
        for each in _parts(archive.namelist(), name, "archive"):
            try:
                opened: Any = archive.open(each)
                opened.peek(1)
            except _DAMAGED:
                raise _unpack("at its beginning") from None
            with opened:
                yield opened


def _parts(names: Iterable[str], name: str, pointer: str) -> list[str]:
    """Return the files of a document, in order, from the outermost folder that has any."""
    stem, dot, ending = name.rpartition(".")
    numbered = re.compile(rf"{re.escape(stem)}(?:-([0-9]+))?{re.escape(dot + ending)}")
    found: dict[PurePosixPath, list[tuple[int, str]]] = {}
    for each in names:
        path = PurePosixPath(each)
        part = numbered.fullmatch(path.name)
        # macOS adds files with the same names in a separate folder.
        if part is not None and path.parts[0] != "__MACOSX":
            found.setdefault(path.parent, []).append((int(part[1] or -1), each))
    if not found:
        raise InvalidInputError(
            f"The {pointer} holds no {name}.", hint=f"Name the {pointer} as it was downloaded, or one of its files."
        )
    return [each for _, each in sorted(found[min(found, key=lambda folder: (len(folder.parts), str(folder)))])]


def _unpack(place: str) -> InvalidInputError:
    """Return the error for an archive that cannot be unpacked."""
    return InvalidInputError(
        f"The archive is damaged or encrypted, {place}.",
        hint="Download it again, or unpack it, and name its conversations.json.",
    )


def _without_mark(start: bytes) -> str:
    """Return the encoding of a file without a byte order mark: JSON begins with two ASCII characters."""
    if start[1:2] == b"\0" and start[:1] != b"\0":
        return "utf-16-le" if start[2:3] != b"\0" else "utf-32-le"
    return "utf-16-be" if start[:1] == b"\0" and start[1:2] != b"\0" else "utf-8"
