"""Rebuild the prompt of a past answer from its manifest and what is stored, with the code that rendered it. Pure."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from langchain_supabase_memory.context.board import LONGEST_NOTES, BoardPart
from langchain_supabase_memory.context.load import referenced_turn_message
from langchain_supabase_memory.context.manifest_details import REFERENCE
from langchain_supabase_memory.context.media import without_media
from langchain_supabase_memory.context.profile_part import ProfilePart, profile_line
from langchain_supabase_memory.context.recall_part import RecallPart
from langchain_supabase_memory.context.summary_part import SummaryPart, note, opening
from langchain_supabase_memory.context.truncate import cut_to
from langchain_supabase_memory.json_types import AnyMessage
from langchain_supabase_memory.language.messages import attribution, codec, content
from langchain_supabase_memory.language.messages.blocks import PromptEntry, blocks
from langchain_supabase_memory.operations.boards.board import BoardItem
from langchain_supabase_memory.operations.manifests.details import PassageDetails, passage_key
from langchain_supabase_memory.operations.manifests.manifest import Manifest
from langchain_supabase_memory.operations.manifests.parts import ManifestPart
from langchain_supabase_memory.operations.summaries import shorten
from langchain_supabase_memory.settings import ContextBudget
from langchain_supabase_memory.values import Chunk, NewerFact, Repeats, Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.operations.boards.board import Board
    from langchain_supabase_memory.operations.manifests.details import AlteredMessage
    from langchain_supabase_memory.operations.profile import ProfileItem
    from langchain_supabase_memory.values import ConversationKey, Turn

PartChange: TypeAlias = Literal[
    "edited", "gone", "expired", "resummarized", "deleted", "rewritten", "not_indexed", "cut", "not_read", "other"
]
"""Why a part is not as it was.

Messages were `edited`, are `gone` (as items of the profile may be), or have `expired`; the summary was regenerated or
is gone (`resummarized`); a person `deleted` a board item or summary; the board's notes were `rewritten`; a passage is
`not_indexed` any more; the manifest was `cut` to its maximum size; the part is of others and `not_read`; or something
`other` has changed, such as the counter of tokens, or a redactor that stores other words than were sent.
"""

CHANGES: Final[Mapping[PartChange, str]] = {
    "edited": "Messages were edited since.",
    "gone": "Messages, or items of the profile, were deleted since.",
    "expired": "Messages have expired since.",
    "resummarized": "The summary was rewritten since, or is gone.",
    "deleted": "A person deleted it from the board since.",
    "rewritten": "The board’s notes were rewritten since.",
    "not_indexed": "A passage is not indexed any more.",
    "cut": "The manifest has no room for all of it.",
    "not_read": "It is of others, and not read here.",
    "other": "Its size is not as it was.",
}
"""Each change as a sentence."""


@dataclass(frozen=True)
class RebuiltPart:
    """A part of a past prompt, rebuilt.

    Attributes:
        was: The part in the manifest.
        messages: Its messages, as far as they can be rebuilt.
        changes: Why it is not as it was; empty if it is.
        items: Of boards of others, what it showed: the items, each by the first eight digits of its id.
        counts: Messages, characters and approximate tokens of what was rebuilt.
        sequences: The number of each of its messages; `None` for what is no message of the conversation, and for one
            that was stored later.
        segment: The segment of a summary.
        chunks: The passages, the best first.
        board_items: The items of the board as they were.
    """

    was: ManifestPart
    messages: list[AnyMessage] = field(default_factory=list, repr=False)
    changes: tuple[PartChange, ...] = ()
    items: tuple[str, ...] = ()
    counts: tuple[int, int, int] = (0, 0, 0)
    sequences: tuple[int | None, ...] = ()
    segment: Segment | None = None
    chunks: tuple[Chunk, ...] = ()
    board_items: tuple[BoardItem, ...] = ()

    @property
    def name(self) -> str:
        """The part's name: see `PartName`."""
        return self.was.name

    @property
    def is_equal(self) -> bool:
        """Whether its messages, characters and tokens are those of the manifest, and nothing has changed since."""
        return not self.changes

    @cached_property
    def text(self) -> str:
        """Its words."""
        is_ours = self.name not in ("recent", "current")
        return "\n".join(str(each.text) if is_ours else content.line(each) for each in self.messages)


@dataclass(frozen=True)
class RebuiltPrompt:
    """What the prompt of a past answer was made of.

    Attributes:
        manifest: Its manifest.
        parts: Its parts, in the order in which the model read them.
    """

    manifest: Manifest
    parts: list[RebuiltPart] = field(repr=False)

    @property
    def is_equal(self) -> bool:
        """Whether every part is as it was."""
        return all(part.is_equal for part in self.parts)

    @property
    def changes(self) -> dict[str, tuple[PartChange, ...]]:
        """Why parts are not as they were, by their names; empty if all are."""
        return {part.name: part.changes for part in self.parts if part.changes}

    def text(self) -> str:
        """All words, each part below its name."""
        return "\n\n".join(f"{part.name}:\n{part.text}" for part in self.parts)


@dataclass(frozen=True)
class Sources:
    """What is stored of what a manifest names.

    Attributes:
        rows: The messages by their sequences, those that a graph has left among them.
        expired: First and last of each range of messages that have expired.
        segment: The segment of the summary; `None` if it is gone.
        board: The board as it was; `None` if nothing of it is needed.
        passages: The chunks that are there, by the place of the passage.
        turn: The turn that was pointed at; `None` if it is gone.
        profile: The items of the profile that hold, or held.
    """

    rows: Mapping[int, Mapping[str, Any]] = field(default_factory=dict)
    expired: Sequence[Sequence[int]] = ()
    segment: Segment | None = None
    board: Board | None = None
    passages: Mapping[int, Chunk] = field(default_factory=dict)
    turn: Turn | None = None
    profile: Sequence[ProfileItem] = ()


def shown_sequences(manifest: Manifest, name: str) -> tuple[list[tuple[int, int]], list[int]]:
    """Return the messages that a part showed: ranges with numbers, and those that had none as they were not read.

    Args:
        manifest: The manifest.
        name: `recent` or `current`.
    """
    part = next((each for each in manifest.parts if each.name == name), None)
    if part is None:
        return [], []
    shown = manifest.details.shown.get(name)
    stored = [] if part.first is None or part.last is None else [(part.first, part.last)]
    later = 0 if stored else part.messages
    if shown is not None:
        stored, later = list(shown.ranges), shown.stored_later
    first = manifest.from_sequence or 0
    # The newest of what was stored with it is the answer. What is more was stored before, and not read.
    unread = max(0, later - ((manifest.to_sequence or 0) - first)) if name == "current" else 0
    begin = stored[0][0] if stored else first
    if name == "current" and (of_recent := manifest.details.shown.get("recent")) is not None:
        first += of_recent.stored_later
    return stored, [*range(max(begin - unread, 0), begin), *range(first, first + later - unread)]


@dataclass
class PromptRebuilder:
    """Rebuilds one prompt.

    Attributes:
        key: The conversation.
        manifest: Its manifest.
        sources: What is stored of it.
        time_zone: The reader's time zone today.
    """

    key: ConversationKey
    manifest: Manifest
    sources: Sources
    time_zone: tzinfo = UTC

    def rebuild(self) -> RebuiltPrompt:
        """Return the prompt."""
        made = {part.name: self._part(part) for part in self.manifest.parts}
        order = ["profile", "summary", "note", "recent", "board", "shared", "recalled", "reference", "current"]
        recent = made.get("recent")
        if "current" not in made and recent is not None and recent.messages:
            last = recent.messages[-1]
            if content.tool_calls(last) or last.type == "tool":
                order.remove("recent")
                order.insert(order.index("current"), "recent")
        order += [name for name in made if name not in order]
        return RebuiltPrompt(self.manifest, [made[name] for name in order if name in made])

    def _part(self, part: ManifestPart) -> RebuiltPart:
        if part.name == "summary":
            return self._summary(part)
        if part.name == "note":
            told = self.manifest.details.note
            message = opening() if part.reason == "opening" else SummaryPart(note=note(told or None)).message
            return self._rebuilt(part, [message], [])
        if part.name in ("recent", "current"):
            return self._messages(part)
        if part.name == "board":
            return self._board(part)
        if part.name == "recalled":
            return self._recalled(part)
        if part.name == "reference":
            return self._reference(part)
        if part.name == "profile":
            return self._profile(part)
        items = tuple(item for board in self.manifest.shared for item in board.items) if part.name == "shared" else ()
        return RebuiltPart(part, changes=("not_read",), items=items)

    def _rebuilt(
        self, part: ManifestPart, messages: Sequence[BaseMessage | None], changes: Sequence[PartChange]
    ) -> RebuiltPart:
        return self._of_entries(part, [PromptEntry(each) for each in messages if each is not None], changes)

    def _of_entries(
        self, part: ManifestPart, entries: Sequence[PromptEntry], changes: Sequence[PartChange]
    ) -> RebuiltPart:
        """Return a part; one whose size is another for no known reason says so."""
        numbers = zip((0, 0, 0), *(entry.counts for entry in entries), strict=True)
        messages, characters, tokens = map(sum, numbers)
        is_same = (messages, characters, tokens) == (part.messages, part.characters, part.tokens)
        if not is_same and not changes:
            changes = ["cut" if self.manifest.cut else "other"]
        found = tuple(dict.fromkeys(changes))
        return RebuiltPart(
            part,
            [entry.message for entry in entries],
            found,
            counts=(messages, characters, tokens),
            sequences=tuple(next(iter(entry.sequences), None) for entry in entries),
        )

    def _summary(self, part: ManifestPart) -> RebuiltPart:
        segment = self.sources.segment
        if segment is None or segment.number != part.number:
            return self._rebuilt(part, [], ["resummarized"])
        made_at = self.manifest.made_at
        is_newer = made_at is not None and max(segment.created_at, segment.edited_at or segment.created_at) > made_at
        told = self.manifest.details.note
        said = "" if told is None else note(told or None)

        def message(characters: int) -> BaseMessage | None:
            return SummaryPart(segment, shorten(segment.content, characters), said).message

        shown = _of_size(message, len(segment.content), part.characters)
        return replace(self._rebuilt(part, [shown], ["resummarized"] if is_newer else []), segment=segment)

    @cached_property
    def _entries(self) -> tuple[list[PromptEntry], list[PromptEntry], dict[str, list[PartChange]]]:
        """The messages of the history and of the current turn, and what of them has changed."""
        rows, details = self.sources.rows, self.manifest.details
        before: list[PromptEntry] = []
        starts: dict[str, int] = {}
        changes: dict[str, list[PartChange]] = {}
        unstored = -2
        messages = dict(zip(rows, codec.from_payloads([row["payload"] for row in rows.values()]), strict=True))
        for name in ("recent", "current"):
            starts[name] = len(before)
            stored, later = shown_sequences(self.manifest, name)
            wanted = [(number, True) for first, last in stored for number in range(first, last + 1)]
            wanted = sorted([*wanted, *((number, False) for number in later)])
            changes[name] = []
            for number, is_stored in wanted:
                if number not in rows:
                    continue
                message = messages[number]
                if self._is_since(rows[number]["updated_at"]):
                    changes[name].append("edited")
                said = content.in_prompt(message) if name == "recent" else message
                if self.key.is_in_space:
                    said = attribution.attributed(said, rows[number].get("author_name"))
                before.append(PromptEntry(said, (number if is_stored else unstored,)))
                unstored -= not is_stored
        made, _ = blocks(before)
        start = starts["current"]
        entries: dict[bool, list[PromptEntry]] = {False: [], True: []}
        for block in made:
            for entry in block.entries:
                how = details.altered.get(next(iter(entry.sequences), 0)) if entry.sequences else None
                was = PromptEntry(entry.message, tuple(each for each in entry.sequences if each >= 0))
                entries[block.place >= start].append(_altered(was, how))
        return entries[False], entries[True], changes

    def _messages(self, part: ManifestPart) -> RebuiltPart:
        recent, current, changes = self._entries
        entries = recent if part.name == "recent" else current
        found: list[PartChange] = list(changes[part.name])
        if len(entries) < part.messages:
            found += self._missing(part.name)
        return self._of_entries(part, entries, found)

    def _missing(self, name: str) -> Iterator[PartChange]:
        """Yield why messages that were shown are not there."""
        stored, later = shown_sequences(self.manifest, name)
        wanted = [*(number for first, last in stored for number in range(first, last + 1)), *later]
        for number in wanted:
            if number not in self.sources.rows:
                yield "expired" if self._has_expired(number) else "gone"

    def _has_expired(self, number: int) -> bool:
        return any((first or 0) <= number and (last is None or number <= last) for first, last in self.sources.expired)

    def _is_since(self, time: str | None) -> bool:
        made_at = self.manifest.made_at
        return time is not None and made_at is not None and datetime.fromisoformat(time) > made_at

    def _profile(self, part: ManifestPart) -> RebuiltPart:
        known = {item.id[:8]: item for item in self.sources.profile}
        shown = [known[each] for each in self.manifest.profile if each in known]
        lines = [profile_line(item, self.sources.profile) for item in shown]
        changes: list[PartChange] = ["gone"] if len(shown) < len(self.manifest.profile) else []
        return self._rebuilt(part, [ProfilePart(tuple(lines)).message], changes)

    def _board(self, part: ManifestPart) -> RebuiltPart:
        board, details = self.sources.board, self.manifest.details
        if board is None:
            return self._rebuilt(part, [], ["cut" if self.manifest.cut else "gone"])
        known = {item.id[:8]: item for item in board.items}
        items = [known[each] for each in self.manifest.items if each in known]
        changes: list[PartChange] = []
        if len(items) < len(self.manifest.items):
            changes.append("deleted" if board.gone else "gone")
        summary = None
        if details.board_summary is not None and board.edited_summary is None:
            changes.append("deleted")
        elif details.board_summary is not None and board.edited_summary is not None:
            summary = _shortened(board.edited_summary.strip(), details.board_summary)
        notes = shorten(" ".join(board.context_notes.split()), LONGEST_NOTES) if details.board_notes else ""
        if details.board_notes and board.rewritten:
            changes.append("rewritten")
        shown = BoardPart(
            items=items,
            edited_summary=summary,
            editor_kind=board.editor_kind or "person",
            context_notes=notes,
            places={} if details.board_notes == 2 else None,
        )
        return replace(self._rebuilt(part, [shown.message], changes), board_items=tuple(items))

    def _recalled(self, part: ManifestPart) -> RebuiltPart:
        chunks: list[Chunk] = []
        changes: list[PartChange] = []
        for place, passage in enumerate(self.manifest.passages):
            chunk = self.sources.passages.get(place)
            if passage.first is not None and passage.last is not None:
                changes += self._changes_of(passage.first, passage.last)
            if chunk is None:
                changes += [] if changes else ["not_indexed"]
                continue
            key = passage_key(passage.first, passage.last, passage.part, passage.id)
            chunk = _with_repeats(chunk, self.manifest.details.passages.get(key), self._zone)
            chunks.append(replace(chunk, newer=self._newer(chunk) if passage.id is None else []))
        shown = RecallPart(chunks, self._zone, self.key)
        return replace(self._rebuilt(part, [shown.message], changes), chunks=tuple(chunks))

    def _changes_of(self, first: int, last: int) -> Iterator[PartChange]:
        """Yield what has become of the messages of a passage."""
        if any(low <= last and high >= first for low, high in self.manifest.changed):
            yield "edited"
        if any(low <= last and high >= first for low, high in self.manifest.gone):
            yield "expired" if self._has_expired(last) else "gone"

    def _newer(self, chunk: Chunk) -> list[NewerFact]:
        """What the board knew to have superseded what a passage says, as `memory_private.superseding_facts`."""
        board = self.sources.board
        known: dict[str | None, BoardItem] = {} if board is None else {item.id: item for item in board.items}
        shown = range(chunk.from_sequence, chunk.to_sequence + 1)
        old = [
            item
            for item in known.values()
            if item.superseded_by is not None
            and item.superseded_at is not None
            and (item.quote is None or item.quote in chunk.content)
            and any(number in shown for number in item.sequences)
        ]
        facts = []
        for item in sorted(old, key=lambda each: (each.superseded_at or each.last_seen_at, each.id)):
            now: BoardItem | None = item
            while now is not None and now.superseded_by is not None:
                now = known.get(now.superseded_by)
            if now is not None and item.superseded_at is not None and now.text.casefold() != item.text.casefold():
                facts.append(NewerFact(item.text, item.superseded_at, now.text, max(now.sequences, default=None)))
        return facts

    def _reference(self, part: ManifestPart) -> RebuiltPart:
        turn = self.sources.turn
        changes = [] if part.first is None or part.last is None else [*self._changes_of(part.first, part.last)]
        if turn is None or turn.from_sequence != part.first:
            return self._rebuilt(part, [], changes or ["gone"])
        size = self.manifest.budget
        budget = ContextBudget(tokens=size) if self.manifest.unit == "tokens" else ContextBudget(characters=size)
        turn = replace(turn, number=turn.number if part.number is None else part.number)
        entry = PromptEntry(referenced_turn_message(turn, budget, self._zone))
        return self._of_entries(part, [_altered(entry, self.manifest.details.altered.get(REFERENCE))], changes)

    @property
    def _zone(self) -> tzinfo:
        """The time zone of the reader then: today's, if it had the same offset."""
        offset = timedelta(minutes=self.manifest.details.time_offset)
        made_at = self.manifest.made_at
        is_same = made_at is not None and made_at.astimezone(self.time_zone).utcoffset() == offset
        return self.time_zone if is_same else timezone(offset)


def _with_repeats(chunk: Chunk, details: PassageDetails | None, time_zone: tzinfo) -> Chunk:
    if details is None or not details.count:
        return chunk
    noon = datetime(1970, 1, 1, 12, tzinfo=time_zone)
    first, last = (noon + timedelta(days=each) for each in (details.first, details.last))
    return replace(chunk, repeats=Repeats(details.count, first, last))


def _altered(entry: PromptEntry, how: AlteredMessage | None) -> PromptEntry:
    """Return an entry as it was shown."""
    if how is None:
        return entry
    if how.media_left_out:
        entry = without_media(entry, how.media_left_out)
    return entry if how.cut_to is None else cut_to(entry, how.cut_to)


def _of_size(make: Callable[[int], BaseMessage | None], longest: int, characters: int) -> BaseMessage | None:
    """Return what has a number of characters of what grows with its argument, or else what comes near."""

    def size(room: int) -> int:
        message = make(room)
        return 0 if message is None else PromptEntry(message).characters

    if size(longest) <= characters:
        return make(longest)
    return make(bisect_left(range(longest), characters, key=size))


def _shortened(text: str, characters: int) -> str:
    """Return a text shortened to a length that it had."""
    if len(text) <= characters:
        return text
    return shorten(text, bisect_left(range(len(text)), characters, key=lambda room: len(shorten(text, room))))
