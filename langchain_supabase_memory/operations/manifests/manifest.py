"""The manifest of a prompt as a value: what was in the prompt, and why."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory import markup
from langchain_supabase_memory.operations.manifests import encoding
from langchain_supabase_memory.operations.manifests.beginning import Beginning
from langchain_supabase_memory.operations.manifests.details import ManifestDetails, manifest_details
from langchain_supabase_memory.operations.manifests.diff import ManifestDiff, diff
from langchain_supabase_memory.operations.manifests.parts import ManifestBoard, ManifestPart, ManifestPassage
from langchain_supabase_memory.operations.rows import time_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from langchain_supabase_memory.operations.manifests.encoding import Lists


@dataclass(frozen=True)
class Usage:
    """The token usage that the model reports; `None` for a count that it does not report.

    Attributes:
        input_tokens: Tokens read.
        output_tokens: Tokens written.
        total_tokens: Tokens read and written.
        cached_tokens: Tokens read from the provider's cache.
    """

    input_tokens: int | None
    output_tokens: int | None
    total_tokens: int | None
    cached_tokens: int | None


@dataclass(frozen=True)
class RequestTokens:
    """The approximate tokens of what the model's request had beside the memory's parts.

    Attributes:
        system: Those of the agent's own system prompt.
        tools: Those of the tools' descriptions and arguments.
        tool_count: How many tools there were.
    """

    system: int
    tools: int
    tool_count: int


@dataclass(frozen=True)
class Manifest:
    """What was in a prompt, and why: numbers and the prefixes of ids, never text.

    Attributes:
        entry_point: What requested the pack: see `encoding.EntryPoint`.
        unit: The unit of the budget: `characters` or `tokens`.
        budget: The maximum size of the pack.
        used: Its size in the same unit.
        turn: The sequence of the user's message; `None` if unknown.
        parts: The parts of the prompt.
        items: The board items in the prompt, each by the first eight digits of its id.
        items_left_out: How many items were read but did not fit.
        has_more_items: Whether the board had more than were read.
        profile: The items of the user's profile in the prompt, each by the first eight digits of its id.
        shared: The boards of spaces and other agents.
        passages: The recalled passages, the best first.
        omitted: First, last and reason of each range that was neither shown in full nor covered.
        full_messages: How many messages the whole history had.
        full_characters: The characters of the whole history, which is what sending all of it would have cost.
        full_tokens: Its approximate tokens.
        usage: The usage that the model reports; `None` if the answer has none.
        request: The tokens of the system prompt and of the tools; `None` if the integration does not know them.
        failed: What failed while the pack was created: `summary`, `recall`, `rerank`.
        opted_out: Whether the conversation was opted out.
        cut: Whether it did not fit in full: parts of scores, then items and passages are missing.
        id: Its uuid; `None` if the pack is not stored.
        from_sequence: The first message stored with it.
        to_sequence: The last message stored with it, usually the answer.
        made_at: When it was stored.
        expires_at: When it is deleted automatically; `None`: with its messages.
        gone: First and last of each range of its messages that no longer exist.
        changed: First and last of each range of its messages that were edited since.
        changed_items: Those of its `items` that were edited or deleted since.
        resummarized: Whether its summary was regenerated since, or is gone.
        details: From what `Conversation.prompt` rebuilds the prompt.
        recall: Where recall searched: `conversation`, `agent`, `user`, or `none` if it was off; `None` if unknown.
    """

    entry_point: str
    unit: str
    budget: int
    used: int
    turn: int | None
    parts: tuple[ManifestPart, ...]
    items: tuple[str, ...] = ()
    items_left_out: int = 0
    has_more_items: bool = False
    profile: tuple[str, ...] = ()
    shared: tuple[ManifestBoard, ...] = ()
    passages: tuple[ManifestPassage, ...] = ()
    omitted: tuple[tuple[int, int, str], ...] = ()
    full_messages: int = 0
    full_characters: int = 0
    full_tokens: int = 0
    usage: Usage | None = None
    request: RequestTokens | None = None
    failed: tuple[str, ...] = ()
    opted_out: bool = False
    cut: bool = False
    id: str | None = None
    from_sequence: int | None = None
    to_sequence: int | None = None
    made_at: datetime | None = None
    expires_at: datetime | None = None
    gone: tuple[tuple[int, int], ...] = ()
    changed: tuple[tuple[int, int], ...] = ()
    changed_items: tuple[str, ...] = ()
    resummarized: bool = False
    details: ManifestDetails = field(default_factory=ManifestDetails, repr=False)
    recall: str | None = None

    @property
    def characters(self) -> int:
        """The characters that were sent."""
        return sum(part.characters for part in self.parts)

    @property
    def tokens(self) -> int:
        """The approximate tokens that were sent."""
        return sum(part.tokens for part in self.parts)

    @property
    def unspent(self) -> int:
        """How much of the budget was not used, in its unit."""
        return max(0, self.budget - self.used)

    @property
    def saved_characters(self) -> int:
        """The characters saved compared to the whole history; below 0 if a short history got longer."""
        return self.full_characters - self.characters

    @property
    def saved_tokens(self) -> int:
        """The approximate tokens saved compared to the whole history."""
        return self.full_tokens - self.tokens

    @property
    def beginning(self) -> Beginning:
        """What the prompt begins with, as far as it is kept."""
        parts = {part.name: part for part in self.parts}
        summary, recent = parts.get("summary"), parts.get("recent")
        return Beginning(
            unit=self.unit,
            budget=self.budget,
            segment=None if summary is None else summary.number,
            segment_id=None,
            first=None if recent is None else recent.first,
            summary=0 if summary is None else summary.characters,
            profile=self.profile,
            gives_room=any(why == "recalled" for _, _, why in self.omitted),
        )

    def since(self, earlier: Manifest) -> ManifestDiff:
        """Compare with an earlier manifest: which parts were added, removed, grew or have another reason.

        Args:
            earlier: Usually the manifest of the previous turn.
        """
        return diff(earlier, self)

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest as JSON-like values, for a page or a log."""
        times = {
            name: time and time.isoformat()
            for name, time in (("made_at", self.made_at), ("expires_at", self.expires_at))
        }
        return {**asdict(self), **times, "characters": self.characters, "tokens": self.tokens}

    def _repr_html_(self) -> str:
        rows = [
            *(
                (each.name, each.reason, f"{each.messages:,}", f"{each.characters:,}", f"{each.tokens:,}",
                 _range(each.first, each.last))
                for each in self.parts
            ),
            *(("left out", why, f"{last - first + 1:,}", None, None, _range(first, last))
              for first, last, why in self.omitted),
        ]  # fmt: skip
        headings = ("part", "why", "messages", "characters", "tokens", "which")
        return markup.table("What stood in the prompt", headings, rows, note=self._head)

    @property
    def _head(self) -> str:
        return f"{self.used:,} of {self.budget:,} {self.unit}, by {self.entry_point}"

    def __str__(self) -> str:
        """Return one line for each part, and for each omitted range."""
        lines = [self._head]
        for part in self.parts:
            size = f"{part.characters:,} characters, {part.tokens:,} tokens"
            lines.append(f"{part.name}: {size}{_where(part.first, part.last)}: {part.reason}")
        return "\n".join([*lines, *(f"left out{_where(first, last)}: {why}" for first, last, why in self.omitted)])


@dataclass(frozen=True)
class ManifestPage:
    """A page of manifests.

    Attributes:
        manifests: The manifests, newest first.
        after: The cursor of the next page; `None` if there is none.
    """

    manifests: list[Manifest]
    after: str | None = None

    def _repr_html_(self) -> str:
        rows = (
            (
                each.turn,
                markup.minute(each.made_at),
                each.entry_point,
                ", ".join(part.name for part in each.parts),
                f"{each.tokens:,}",
                f"{each.full_tokens:,}",
                f"{len(each.omitted):,}",
            )
            for each in self.manifests
        )
        headings = ("asked in message", "when", "by", "parts", "tokens", "tokens of the whole history", "left out")
        note = "there are more, by after=" if self.after else None
        return markup.table("What stood in prompts", headings, rows, note=note)


def manifest(lists: Lists, stored: Mapping[str, Any] | None = None) -> Manifest:
    """Decode a stored manifest. A short one, or one from a later release, is decoded as far as possible.

    Args:
        lists: The lists of numbers.
        stored: The columns that `memory_manifests` returns with it; `None` if it is not stored.
    """
    head = next(_rows(lists, encoding.HEAD, 12))
    usage = next(_rows(lists, encoding.USAGE, 5), None)
    request = next(_rows(lists, encoding.REQUEST, 4), None)
    flags = max(head[encoding.FLAGS], 0)
    stored = stored or {}
    asked = head[5] if head[5] >= 0 else stored.get("from_sequence")
    return Manifest(
        entry_point=encoding.name_of(encoding.ENTRY_POINTS, head[1]),
        unit=encoding.name_of(encoding.UNITS, head[2]),
        budget=head[3],
        used=head[4],
        turn=asked,
        parts=tuple(map(_part, _rows(lists, encoding.PART, 9))),
        items=_items(each for row in lists if row[0] == encoding.ITEMS for each in row[1:]),
        items_left_out=max(head[8], 0),
        has_more_items=bool(flags & encoding.MORE),
        profile=_items(each for row in lists if row[0] == encoding.PROFILE for each in row[1:]),
        shared=tuple(map(_shared_board, _rows(lists, encoding.SHARED, 5))),
        passages=tuple(_passages(lists)),
        omitted=tuple(
            (row[1], row[2], encoding.name_of(encoding.REASONS, row[3])) for row in _rows(lists, encoding.OMITTED, 4)
        ),
        full_messages=head[9],
        full_characters=head[10],
        full_tokens=head[11],
        usage=None if usage is None else Usage(*(each if each >= 0 else None for each in usage[1:5])),
        request=None if request is None else RequestTokens(request[1], request[3], request[2]),
        failed=tuple(name for bit, name in enumerate(encoding.FAILURES) if flags & 1 << bit),
        opted_out=bool(flags & encoding.OPTED_OUT),
        cut=bool(flags & encoding.CUT),
        id=stored.get("id"),
        from_sequence=stored.get("from_sequence"),
        to_sequence=stored.get("to_sequence"),
        made_at=time_of(stored.get("made_at")),
        expires_at=time_of(stored.get("expires_at")),
        gone=_pairs(stored.get("gone", ())),
        changed=_pairs(stored.get("changed", ())),
        changed_items=_items(stored.get("changed_items", ())),
        resummarized=stored.get("resummarized", False),
        details=manifest_details(lists),
        recall=_recall_scope(head),
    )


def _rows(lists: Lists, kind: int, length: int) -> Iterator[list[int]]:
    """Yield the lists of a kind, padded to a minimum length; there is always a head."""
    found = [row for row in lists if row[0] == kind]
    for row in found or ([[kind]] if kind == encoding.HEAD else []):
        yield [*row, *[encoding.NONE] * (length - len(row))]


def _part(row: list[int]) -> ManifestPart:
    places = (each if each >= 0 else None for each in row[6:9])
    return ManifestPart(
        encoding.name_of(encoding.PARTS, row[1]), encoding.name_of(encoding.REASONS, row[2]), *row[3:6], *places
    )


def _shared_board(row: list[int]) -> ManifestBoard:
    kind = encoding.name_of(encoding.SHARED_KINDS, row[1])
    return ManifestBoard(kind, row[2], row[3] == 1, max(row[4], 0), _items(row[5:]))


def _passages(lists: Lists) -> Iterator[ManifestPassage]:
    for row in lists:
        if row[0] == encoding.PASSAGE and len(row) >= 4:
            yield ManifestPassage(row[1], row[2], row[3], None, _scores(row[4:]))
        elif row[0] == encoding.PASSAGES:
            for first, further, part in zip(row[1::3], row[2::3], row[3::3], strict=False):
                yield ManifestPassage(first, first + further, part)
        elif row[0] == encoding.ELSEWHERE and len(row) >= 2:
            yield ManifestPassage(None, None, None, f"{row[1]:08x}", _scores(row[2:]))


def _scores(hundredths: Sequence[int]) -> dict[str, float]:
    return {name: each / 100 for name, each in zip(encoding.SCORES, hundredths, strict=False) if each}


def _items(beginnings: Iterable[int]) -> tuple[str, ...]:
    return tuple(f"{each:08x}" for each in beginnings)


def _pairs(ranges: Sequence[Sequence[int]]) -> tuple[tuple[int, int], ...]:
    return tuple((first, last) for first, last in ranges)


def _recall_scope(head: Sequence[int]) -> str | None:
    """Return where recall searched; manifests of earlier releases do not say."""
    code = head[encoding.RECALL] if len(head) > encoding.RECALL else encoding.NONE
    return str(encoding.name_of(encoding.RECALLS, code)) if code >= 0 else None


def _where(first: int | None, last: int | None) -> str:
    return "" if first is None else f", messages {_range(first, last)}"


def _range(first: int | None, last: int | None) -> str | None:
    return None if first is None else f"{first} to {last}"
