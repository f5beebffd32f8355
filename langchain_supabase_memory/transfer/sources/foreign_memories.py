"""Memories that other libraries derived about a user: their documents, and what a profile can hold of them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from langchain_supabase_memory import documents
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.sentences import sentences
from langchain_supabase_memory.transfer import file_reader
from langchain_supabase_memory.transfer.values import LossCount, SourceProblem, UserProfile

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Iterator

    from langchain_supabase_memory.transfer.values import Event

ForeignKind: TypeAlias = Literal["fact", "preference", "instruction", "constraint"]
"""What a memory may be, as far as its words or its source tell."""

LONGEST_CHARACTERS: Final = 500
"""The maximum number of characters of one memory; longer ones are divided between sentences."""

LONGEST_BYTES: Final = 1000
"""Its maximum number of bytes in UTF-8."""

TOO_LONG: Final = f"sentences of more than {LONGEST_CHARACTERS} characters or {LONGEST_BYTES} bytes"
OTHERS: Final = "memories of other users"
NOBODYS: Final = "memories that name no user"

_LINES: Final = (".jsonl", ".ndjson")
"""The endings of files with one document a line."""


@dataclass(frozen=True)
class ForeignMemory:
    """What another library knows of a user, in one sentence or a few.

    Attributes:
        text: What it says.
        kind: What it seems to be.
        place: Its location in the source.
        created_at: When the library stored it; `None` if it does not say.
        valid_at: Since when it holds; `None` if the library does not say.
        invalid_at: Until when; `None` if it holds.
        source_id: Its id there.
        user_id: Its user there; `None` if the library does not say.
    """

    text: str = field(repr=False)
    kind: ForeignKind
    place: str
    created_at: datetime | None = None
    valid_at: datetime | None = None
    invalid_at: datetime | None = None
    source_id: str | None = None
    user_id: str | None = None


Found: TypeAlias = ForeignMemory | LossCount | SourceProblem
"""What a reader of another library's document yields, in order."""


ITEMS: Final = 200
"""The maximum number of items that are stored at once."""


def profile_events(memories: Iterable[Found], path: str | os.PathLike[str], library: str) -> Iterator[Event]:
    """Yield what an import stores of another library's memories: items of the user's profile.

    Nothing says so but that library, so they have no quote and are proposed: they hold once the user confirms them, or
    says so. Each has the time that the library gives, or that of the file's last change, so that a repeated import
    changes nothing.

    Args:
        memories: What a reader of its document yields.
        path: Their file.
        library: The library's name, the author of the items.
    """
    items: list[Mapping[str, Any]] = []
    place = ""
    for each in memories:
        if isinstance(each, ForeignMemory):
            place = place or each.place
            items.append(_item(each, path, library))
        if items and (len(items) >= ITEMS or isinstance(each, SourceProblem)):
            yield UserProfile({"profile": items, "consents": []}, place)
            items, place = [], ""
        if not isinstance(each, ForeignMemory):
            yield each
    if items:
        yield UserProfile({"profile": items, "consents": []}, place)


def changed_at(path: str | os.PathLike[str]) -> datetime:
    """Return when a file was last changed."""
    return datetime.fromtimestamp(Path(path).stat().st_mtime, UTC)


def _item(memory: ForeignMemory, path: str | os.PathLike[str], library: str) -> Mapping[str, Any]:
    since = memory.valid_at or memory.created_at or changed_at(path)
    return {
        "kind": memory.kind,
        "value": memory.text,
        "polarity": 0,
        "state": "proposed",
        "author": library,
        "author_kind": "import",
        "first_seen_at": min(since, memory.created_at or since).isoformat(),
        "suggested_at": since.isoformat(),
        "evidence": [],
    }


class UnreadableError(ValueError):
    """A value in a document has another type than documented; the message names the key, and no content."""


def records(
    path: str | os.PathLike[str], encoding: str | None, *, lists: tuple[str, ...], name: str
) -> Iterator[tuple[str, Any] | SourceProblem]:
    """Yield the records of a document, with their locations: a list, an object that holds one, or one a line.

    Args:
        path: The file. One that ends in `.jsonl` or `.ndjson` has a document in each line.
        encoding: Its encoding; by default it is detected from the first bytes, or UTF-8.
        lists: The keys under which an object holds its list.
        name: What a record is called in locations, such as `memory`.

    Raises:
        InvalidInputError: There is no such file, it is no JSON, or it is too large to be read whole.
    """
    if Path(path).suffix.lower() in _LINES:
        for number, line in file_reader.lines(path, encoding):
            place = f"line {number}"
            try:
                document = documents.loads(line)
            except (ValueError, RecursionError):
                yield SourceProblem("The line is no JSON, or is nested too deeply.", "Export it again.", place)
                continue
            found = _find_list(document, lists)
            yield from ((place, each) for each in ([document] if found is None else found))
        return
    document = read_document(path, encoding)
    found = document if isinstance(document, list) else _find_list(document, lists)
    if found is None:
        raise InvalidInputError(
            f"The document is no list, and holds none as {' or '.join(lists)}.",
            hint="Write the library's answer to the file as it is, as JSON.",
        )
    yield from ((f"{name} {number}", each) for number, each in enumerate(found, 1))


def read_records(
    path: str | os.PathLike[str],
    encoding: str | None,
    *,
    lists: tuple[str, ...],
    name: str,
    hint: str,
    read: Callable[[Mapping[str, Any], str], Iterator[Found]],
) -> Iterator[Found]:
    """Yield what a reader finds in each record of a document; one that cannot be read is a problem of its own.

    Args:
        path: The file.
        encoding: Its encoding; by default it is detected from the first bytes, or UTF-8.
        lists: The keys under which an object holds its list.
        name: What a record is called in locations, such as `memory`.
        hint: What a record looks like, for the problem.
        read: Reads one record, given with its location.
    """
    for record in records(path, encoding, lists=lists, name=name):
        if isinstance(record, SourceProblem):
            yield record
            continue
        place, document = record
        try:
            yield from read(fields(document), place)
        except UnreadableError as error:
            yield SourceProblem(str(error), hint, place)


def memories(text: str, place: str, label: str = "", **about: Any) -> Iterator[Found]:
    """Yield a record's text as memories, and how many of its sentences are too long for one.

    Args:
        text: The text.
        place: The record's location.
        label: What the source calls its kind.
        about: The other fields of `ForeignMemory`, which are the same for each.
    """
    found, too_long = parts(text)
    if too_long:
        yield LossCount(TOO_LONG, place, too_long)
    for part in found:
        yield ForeignMemory(part, kind_of(part, label), place, **about)


_LINES_HINT: Final = "Write one record a line, into a file that ends in .jsonl."


def read_document(path: str | os.PathLike[str], encoding: str | None) -> Any:
    """Read one JSON document.

    Raises:
        InvalidInputError: There is no such file, it is no JSON, or it is too large to be read whole.
    """
    with file_reader.utf8(path, encoding) as file:
        text = file.read(file_reader.LONGEST + 1)
    if len(text) > file_reader.LONGEST:
        raise InvalidInputError(
            f"The document has more than {file_reader.LONGEST >> 20} MiB.",
            hint=_LINES_HINT,
        )
    file_reader.check_values(text, "The document", _LINES_HINT)
    try:
        text.decode("utf-8")
    except UnicodeError:
        raise file_reader.encoding_error("the document") from None
    try:
        return documents.loads(text)
    except (ValueError, RecursionError):
        raise InvalidInputError(
            "The file is no JSON, is nested too deeply, or ends in the middle.", hint="Export or download it again."
        ) from None


def _find_list(document: Any, keys: tuple[str, ...]) -> list[Any] | None:
    if not isinstance(document, dict):
        return None
    return next((document[key] for key in keys if isinstance(document.get(key), list)), None)


def fields(record: Any) -> Mapping[str, Any]:
    """Return a record's fields.

    Raises:
        UnreadableError: It is no object.
    """
    if not isinstance(record, Mapping):
        raise UnreadableError("It is no JSON object.")
    return record


def text_of(record: Mapping[str, Any], key: str, *, required: bool = False) -> str | None:
    """Return a text; `None` if there is none.

    Raises:
        UnreadableError: It is no text, holds a NUL, or is missing though it is required.
    """
    value = record.get(key)
    if value is None and not required:
        return None
    if not isinstance(value, str):
        raise UnreadableError(f"Its {key} is no text.")
    if "\0" in value:
        raise UnreadableError(f"Its {key} holds a NUL.")
    return value


def time_of(record: Mapping[str, Any], key: str) -> datetime | None:
    """Return a time; one without a time zone is of UTC.

    Raises:
        UnreadableError: It is no time.
    """
    value = record.get(key)
    if value is None or value == "":
        return None
    try:
        time = datetime.fromisoformat(value)
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).astimezone(UTC)
    except (TypeError, ValueError, OverflowError):
        raise UnreadableError(f"Its {key} is no time.") from None


def parts(text: str) -> tuple[list[str], int]:
    """Divide a text into parts that a profile can hold, and count the sentences that are too long for it.

    Lines stay apart, because such documents list one matter a line; sentences of a line stay together as far as they
    fit.
    """
    found: list[str] = []
    lost = 0
    for line in text.splitlines():
        if _fits(" ".join(line.split())):
            found += [" ".join(line.split())] if re.search(r"\w", line) else []
            continue
        begun = ""
        for span in sentences(line):
            sentence = " ".join(line[span.start : span.end].split())
            if not _fits(sentence):
                lost += 1
            elif begun and _fits(f"{begun} {sentence}"):
                begun = f"{begun} {sentence}"
            else:
                found += [begun] if begun else []
                begun = sentence
        found += [begun] if begun else []
    return found, lost


def _fits(text: str) -> bool:
    return len(text) <= LONGEST_CHARACTERS and len(text.encode("utf-8", "surrogatepass")) <= LONGEST_BYTES


_KINDS: Final[tuple[tuple[ForeignKind, re.Pattern[str]], ...]] = (
    ("instruction", re.compile(r"(?:always|never|please|do not|don't|call me|answer|reply|respond)\b", re.IGNORECASE)),
    ("constraint", re.compile(r".{0,200}\b(?:allerg\w+|intoleran\w+|vegan|vegetarian|cannot|can't)\b", re.IGNORECASE)),
    (
        "preference",
        re.compile(r".{0,200}\b(?:prefer\w*|likes?|loves?|enjoys?|hates?|dislikes?|favou?rites?)\b", re.IGNORECASE),
    ),
)
"""How the kind of an English memory is told by its words; in other languages it is a fact."""


def kind_of(text: str, label: str = "") -> ForeignKind:
    """Return what a memory seems to be, by a label of its source or else by its words."""
    named = label.casefold()
    if "prefer" in named or named in ("likes", "loves", "hates", "dislikes", "enjoys"):
        return "preference"
    if "instruction" in named:
        return "instruction"
    return next((kind for kind, words in _KINDS if words.match(text)), "fact")


class Owners:
    """Tells whose memories a document holds, so that none of another user come along.

    Args:
        source_user: Whose are imported; `None` if the document is one user's.
    """

    def __init__(self, source_user: str | None) -> None:
        self._wanted = source_user
        self._first: str | None = None

    def other(self, user_id: str | None, place: str) -> LossCount | SourceProblem | None:
        """Return what to yield in place of a memory that is not imported; `None` for one that is."""
        if self._wanted is not None:
            if user_id == self._wanted:
                return None
            return LossCount(NOBODYS if user_id is None else OTHERS, place)
        self._first = self._first or user_id
        if user_id in (None, self._first):
            return None
        return SourceProblem(
            "The file holds memories of several users.",
            "Say whose are imported: source_user='...' (--source-user).",
            place,
        )
