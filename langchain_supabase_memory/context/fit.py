"""Which messages stand in a pack. Pure: it reads nothing and asks nobody.

With a window, a pack begins where a segment ends, and shows everything since: it moves only with a new segment, so that
a provider's cache holds. Where more than the window is not summarized, it begins at a multiple of a step.

Without a window, or where the turn under way takes the room, the newest blocks go in as long as they fit, with the
question of the turn in which they begin; the next one is cut where enough room is left for it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import dropwhile
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import HumanMessage, ToolMessage

from langchain_supabase_memory.context.media import limit_media
from langchain_supabase_memory.context.summary_part import SummaryPart, note, opening
from langchain_supabase_memory.context.token_meter import Sizes
from langchain_supabase_memory.context.truncate import truncate
from langchain_supabase_memory.json_types import AnyMessage
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.language.extractive.quotes import carries_a_summary, is_bare
from langchain_supabase_memory.language.messages.blocks import Block, PromptEntry, blocks
from langchain_supabase_memory.operations.summaries import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.token_meter import Meter
    from langchain_supabase_memory.values import Segment

BEYOND: Final = "beyond the budget"
TOO_MANY: Final = "beyond max_messages"
CUT: Final = "cut to fit the budget"
NO_ROOM: Final = "the budget has no room for their summary"
LEFT_TO_RECALL: Final = "summarized in quotes, which recall finds where they are asked for"
SUPERSEDED: Final = "not on this branch of the graph"
UNREADABLE: Final = "it cannot be read"
MEDIA: Final = "some of its images and files are beyond the budget's media"
LEFT_OUT: Final = frozenset({BEYOND, TOO_MANY, CUT})
"""Why messages are not shown whole that a summary would cover."""
_SHORTEST_SUMMARY: Final = 40
_QUOTES: Final = 0.04
"""The share of the budget that quotes have which nobody asked for, where those that are asked for are recalled."""
_QUOTES_OF_WINDOW: Final = _QUOTES / 0.6
"""The same as a share of the window, which no other part of a pack makes smaller."""
_SHORTEST_QUOTES: Final = 200
_TRIES: Final = 4
"""How often a cut block is made smaller by what it is too large."""
_STEP: Final = (7, 12)
"""A step of the window, as a part of it: from 0.6 of a budget to 0.25."""
_ROOM_TO_CUT: Final = 4
"""An older block is cut to fit if one part of the budget in so many is left for it."""


@dataclass(frozen=True)
class History:
    """What there is to choose from.

    Attributes:
        entries: The newest messages, in order, without the current turn.
        segments: The summaries to choose from, in order; the first may be none (everything fits verbatim).
        unread_from: The first message after the first choice that was not read; `None` if all were.
        question: The user's message that the newest block answers, where it lies before `entries`.
        current: The current turn: the user's message, and what followed it so far.
        superseded: Sequence and reason of stored messages that do not belong to this history.
        undecodable: Rows of which no message could be made, and that are not known as such yet.
        read: The number and the message of each stored one that was read.
        recallable: The last message of those from which what is asked for is recalled; -1 where nothing is.
        max_media: The most images and files of what is shown; `None` for no limit.
        characters: Characters of all stored messages since the newest segment, without the current turn.
    """

    entries: Sequence[PromptEntry] = ()
    segments: Sequence[Segment | None] = (None,)
    unread_from: int | None = None
    question: PromptEntry | None = None
    current: Sequence[PromptEntry] = ()
    superseded: Mapping[int, str] = field(default_factory=dict)
    undecodable: Sequence[Mapping[str, Any]] = ()
    read: Sequence[tuple[int, BaseMessage]] = ()
    recallable: int = -1
    max_media: int | None = None
    characters: int = 0

    @cached_property
    def truncated(self) -> tuple[list[Block], list[tuple[int, str]], int]:
        """Its blocks, what is left out of them and why, and the place at which the current turn begins.

        Results at the beginning of what was read belong to calls that were not, and are in no block.
        """
        rest = self.entries if self.unread_from is None else list(dropwhile(_is_result, self.entries))
        before = [*([] if self.question is None or self.current else [self.question]), *rest]
        return *blocks([*before, *self.current]), len(before)

    @cached_property
    def limited(self) -> list[Block]:
        """Its blocks, with a name in the place of each image and file beyond the limit."""
        made, _, start = self.truncated
        return limit_media(made, start, self.max_media)


@dataclass
class FittedContext:
    """What was chosen.

    Attributes:
        head: The summary and the note.
        head_message: The same as a message; `None` if there is nothing to say.
        recent: The messages of the history that are shown, in order.
        current: The current turn, whole unless it alone is beyond the budget; the user's message always is.
        omitted: Sequence and reason of each message that is neither shown whole nor covered by the summary shown.
        ranges: First, last and reason of ranges that are left out whole: not read, or their summary does not fit.
        truncated: The sequences of messages that are cut.
        forms: What the pack and the current turn weigh together, in each of its forms.
    """

    head: SummaryPart = field(default_factory=SummaryPart)
    head_message: AnyMessage | None = None
    recent: list[PromptEntry] = field(default_factory=list)
    current: list[PromptEntry] = field(default_factory=list)
    omitted: dict[int, str] = field(default_factory=dict)
    ranges: list[tuple[int, int, str]] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)
    forms: Sizes = field(default_factory=Sizes)

    @property
    def weight(self) -> int:
        """What the pack and the current turn weigh together."""
        return self.forms.heavier

    @property
    def has_text(self) -> bool:
        """Whether it says anything in the text form, where the current turn is not."""
        return bool(self.recent) or self.head_message is not None


def fit(history: History, meter: Meter, max_messages: int | None = None, window: int | None = None) -> FittedContext:
    """Choose what stands in the pack.

    Args:
        history: What there is.
        meter: The budget.
        max_messages: The most messages of the history, if there is such a limit. Pending calls are shown all the same.
        window: The most characters of the history's messages; `None` shows as many as the budget holds.

    Returns:
        A choice that every provider accepts, and that says what it leaves out. It weighs no more than the budget, or it
        is nothing but what is never left out: the user's message of the current turn, as it is, with the turn's newest
        block, cut as far as it can be; without a current turn calls that are pending, with their question.
    """
    read = _sequences([*history.entries, *history.current]) | history.superseded.keys()
    lowest = min(read, default=1 + (history.unread_from or 0))
    original, left_out, start = history.truncated
    made = history.limited

    for segment in history.segments or (None,):
        after = -1 if segment is None else segment.to_sequence
        is_read = history.unread_from is None or after + 1 >= lowest
        recalls = after <= history.recallable
        choice = _Choice(segment, _later(made, after, start), start, meter, max_messages, recalls, window)
        # Before the first segment there is nothing to go back to: everything is shown as long as it fits.
        is_within = window is None or choice.characters <= window or [*history.segments] == [None]
        result = choice.fit_all() if is_read and is_within else None
        if result is not None:
            break
    else:
        stepped = None if window is None else choice.stepped(window, history.characters)
        result = stepped or choice.newest()

    ranges = []
    if segment is not None and result.head.summary is None:
        ranges.append((0, after, LEFT_TO_RECALL if choice.is_left_to_recall else NO_ROOM))
    if history.unread_from is not None and not is_read:
        ranges.append((max(history.unread_from, after + 1), lowest - 1, choice.why))
    shown = _sequences([*result.recent, *result.current])
    originals, limited = ({id(each) for block in every for each in block.entries} for every in (original, made))
    changed = [each for each in (*result.recent, *result.current) if id(each) not in originals]
    of_media = _sequences(each for each in changed if id(each) in limited)
    result.truncated = sorted(_sequences(changed))
    whole = shown.difference(result.truncated)
    result.ranges = [each for first, last, why in ranges for each in _ranges_without(first, last, why, whole)]
    passed = dict.fromkeys(sorted(read - shown), choice.why)
    omitted = {
        **passed,
        **dict.fromkeys(result.truncated, CUT),
        **dict.fromkeys(of_media, MEDIA),
        **dict(left_out),
        **history.superseded,
    }
    result.omitted = {sequence: why for sequence, why in omitted.items() if sequence > after}
    return result


@dataclass
class _Choice:
    """The blocks that a segment does not cover, and which of them are shown.

    Attributes:
        segment: What covers everything before them; `None` if nothing does.
        later: The blocks, those of the current turn last.
        start: The place at which the current turn begins.
        meter: The budget.
        max_messages: The most messages of the history.
        recalls: Whether what is asked for is recalled from what the segment covers.
        window: The most characters of the history's messages; `None` for as many as the budget holds.
        why: Why those that are not shown are not.
        questions: Where among the blocks the user's messages are.
    """

    segment: Segment | None
    later: list[Block]
    start: int
    meter: Meter
    max_messages: int | None
    recalls: bool
    window: int | None = None
    why: str = BEYOND
    questions: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.questions = [at for at, block in enumerate(self.later) if block.is_question]

    def fit_all(self) -> FittedContext | None:
        """Everything; `None` if it does not fit."""
        result = self._build(self._head(note(None) if self.is_left_to_recall else ""), self.later)
        tells_all = self.segment is None or self.is_left_to_recall or result.head.summary is not None
        return result if tells_all and self._fits(result) else None

    @cached_property
    def characters(self) -> int:
        """Characters of the blocks of the history, without the current turn."""
        return sum(entry.counts[1] for block in self.later if block.place < self.start for entry in block.entries)

    def stepped(self, window: int, total: int) -> FittedContext | None:
        """The blocks from a multiple of a step on, so that the beginning seldom moves; `None` if cutting shows more.

        Args:
            window: The most characters of the history's messages.
            total: Characters of all stored messages since the segment, those that were not read among them.
        """
        step = max(1, window * _STEP[0] // _STEP[1])
        total = max(total, self.characters)
        head = self._head(note(None))
        for steps in range(max(0, -(-(total - window) // step)), -(-total // step)):
            shown = self._since(steps * step - (total - self.characters))
            held = sum(entry.counts[1] for block in shown if block.place < self.start for entry in block.entries)
            if 2 * held < min(total, window - step):
                return None  # a message longer than a step lies there, and is better cut
            result = self._build(head, shown)
            if self._fits(result):
                return result
        return None

    def _since(self, boundary: int) -> list[Block]:
        """The blocks that begin at a character of the history or behind it, from a question on if there is one."""
        offset, starts = 0, []
        for at, block in enumerate(self.later):
            if block.place >= self.start:
                break
            if offset >= boundary:
                starts.append(at)
            offset += sum(entry.counts[1] for entry in block.entries)
        first = next((at for at in starts if at in self.questions), starts[0] if starts else None)
        return [] if first is None else self.later[first:]

    def newest(self) -> FittedContext:
        """The newest blocks as far as they fit; what is never left out is there even if it does not."""
        for head in (self._head(note(self.max_messages)), SummaryPart()):
            count = self._count_that_fits(head)
            result = self._build(head, self._blocks_shown(count))
            if count < len(self.later):
                self.why = (
                    BEYOND if self._build(head, self._blocks_shown(count + 1)).weight > self.meter.limit else TOO_MANY
                )
                left = self.meter.limit - result.weight
                if count == 0 or left * _ROOM_TO_CUT >= self.meter.limit:
                    for tried in range(_TRIES):
                        longer = self._build(head, self._cut(count, left))
                        if self._fits(longer):
                            return longer
                        if longer.weight <= self.meter.limit:
                            break
                        # The note says more, a mark has more digits, or the counter does not add up.
                        left -= (longer.weight - self.meter.limit) << tried
            elif len(result.recent) == self.max_messages:
                self.why = TOO_MANY
            if self._fits(result) and (count or not self._fixed):
                return result
        return self._build(SummaryPart(), self._cut(0, 0) if self._fixed else [])

    def _count_that_fits(self, head: SummaryPart) -> int:
        """How many of the newest blocks fit: looked for around the place that their own weights say."""

        def fits(count: int) -> bool:
            return self._fits(self._build(head, self._blocks_shown(count)))

        if not self.meter.is_additive:
            counts = range(1, len(self.later) + 1)
            return bisect_left(counts, True, key=lambda each: not fits(each))
        count = 0
        room, messages = self.meter.limit - self._framed(head), self.max_messages
        for block in reversed(self.later):
            room -= self.meter.total(block.entries)
            if messages is not None and block.place < self.start:
                messages -= len(block.entries)
            if room < 0 or (messages is not None and messages < 0):
                break
            count += 1
        if fits(count):
            while count < len(self.later) and fits(count + 1):
                count += 1
            return count
        while count and not fits(count):
            count -= 1
        return count

    @property
    def _fixed(self) -> list[Block]:
        """The newest block if it is never left out: it is of the current turn, or its calls are pending."""
        return [block for block in self.later[-1:] if block.place >= self.start or block.unanswered]

    def _blocks_shown(self, count: int) -> list[Block]:
        """So many of the newest blocks, the question they go back to, and the user's message of the current turn."""
        first = len(self.later) - count
        asked = [self.later[at] for at in self.questions if at < first]
        kept = [block for block in asked if block.place >= self.start]
        if count and not kept and first not in self.questions:
            kept = asked[-1:]
        return [*kept, *self.later[first:]]

    def _cut(self, count: int, room: int) -> list[Block]:
        """So many of the newest blocks, and the next, with its question, cut into a room."""
        there = {id(block) for block in self._blocks_shown(count)}
        shown = self._blocks_shown(count + 1)
        cuttable = []
        for block in shown:
            if id(block) not in there:
                # Pending calls stay as they were made.
                held = 1 if block.unanswered else 0
                room -= sum(map(self.meter.weigh, block.entries[:held]))
                cuttable += block.entries[held:]
        cut = _cut_longest(cuttable, room, self.meter)
        return [Block([cut.get(id(entry), entry) for entry in block.entries], block.place) for block in shown]

    def _build(self, head: SummaryPart, blocks: list[Block]) -> FittedContext:
        recent = [entry for block in blocks if block.place < self.start for entry in block.entries]
        current = [entry for block in blocks if block.place >= self.start for entry in block.entries]
        if head.note and self.max_messages is not None:
            head = replace(head, note=note(len(recent)))
        message = head.message()
        if message is None and blocks and not isinstance(blocks[0].entries[0].message, HumanMessage):
            message = opening()
        entries = [*recent, *current]
        made = FittedContext(
            head=head,
            head_message=message,
            recent=recent,
            current=current,
        )
        if made.has_text:
            made.forms = self.meter.sizes_with_frame(head, message, entries)
        else:
            made.forms = Sizes(total := self.meter.total(entries), total)
        return made

    def _fits(self, result: FittedContext) -> bool:
        if result.weight > self.meter.limit:
            return False
        if self.max_messages is None or len(result.recent) <= self.max_messages:
            return True
        least = sum(len(block.entries) for block in self._blocks_shown(1))
        return bool(self._fixed) and self._fixed[0].place < self.start and len(result.recent) <= least

    @cached_property
    def only_quotes(self) -> bool:
        """Whether the summary has nothing that recall does not find: nobody wrote it, nor what it carries on."""
        segment = self.segment
        if segment is None or not self.recalls or segment.model != ExtractiveSummarizer.name:
            return False
        return segment.edited_by is None and not carries_a_summary(segment.content)

    @property
    def is_left_to_recall(self) -> bool:
        """Whether such a summary has too little room to be shown."""
        return self.only_quotes and self._head("").summary is None

    def _head(self, left_out: str) -> SummaryPart:
        """What can be said of what came before in half of the room there is; less where there is too little."""
        held = [*self._blocks_shown(0), *(Block(block.entries[:1], 0) for block in self._fixed if block.unanswered)]
        room = (self.meter.limit - self.meter.total([block.entries[0] for block in held])) // 2

        if self.segment is not None:
            characters, shortest = self.meter.room_in_characters(room), _SHORTEST_SUMMARY
            if self.only_quotes:
                whole = self.meter.room_in_characters(self.meter.limit) * _QUOTES
                most = int(whole if self.window is None else self.window * _QUOTES_OF_WINDOW)
                characters, shortest = min(characters, most), _SHORTEST_QUOTES
            while characters >= shortest:
                head = SummaryPart(self.segment, shorten(self.segment.content, characters), left_out)
                if is_bare(head.text):
                    break
                if self._framed(head) <= room:
                    return head
                characters = min(len(head.text), characters) * room // self._framed(head) - 10
        head = SummaryPart(note=left_out)
        return head if self._framed(head) <= room else SummaryPart()

    def _framed(self, head: SummaryPart) -> int:
        """What a head weighs by itself."""
        return self.meter.sizes_with_frame(head, head.message(), []).heavier


def _later(blocks: list[Block], after: int, start: int) -> list[Block]:
    """The blocks after a sequence, the current turn, and the question of what is under way, if it is covered."""
    first = next((at for at, block in enumerate(blocks) if block.place >= start or _last(block) > after), len(blocks))
    later = blocks[first:]
    if later and not any(block.is_question for block in later):
        later = [*[block for block in blocks[:first] if block.is_question][-1:], *later]
    return later


def _last(block: Block) -> float:
    """The number of a block's last message; one that is not stored yet is newer than all."""
    return max(_sequences(block.entries), default=math.inf)


def _is_result(entry: PromptEntry) -> bool:
    return isinstance(entry.message, ToolMessage)


def _sequences(entries: Iterable[PromptEntry]) -> set[int]:
    return {sequence for entry in entries for sequence in entry.sequences}


def _cut_longest(entries: list[PromptEntry], room: int, meter: Meter) -> dict[int, PromptEntry]:
    """Those of the entries that have to be cut for all to fit into a room, by the identity of what they stand for."""
    cut: dict[int, PromptEntry] = {}
    weights = {id(entry): meter.weigh(entry) for entry in entries}
    order = sorted(entries, key=lambda entry: weights[id(entry)])

    def shorten(entry: PromptEntry, share: int) -> None:
        shorter = truncate(entry, share, meter)
        weights[id(entry)] = meter.weigh(shorter)
        if shorter is not entry:
            cut[id(entry)] = shorter

    # The short ones stay; the others share what those leave.
    left = room
    for place, entry in enumerate(order):
        shorten(entry, left // (len(order) - place))
        left -= weights[id(entry)]
    # What cannot be as short as its share takes from the others.
    for entry in reversed(order):
        if left < 0:
            before = weights[id(entry)]
            shorten(entry, before + left)
            left += before - weights[id(entry)]
    return cut


def _ranges_without(first: int, last: int, why: str, shown_sequences: set[int]) -> Iterator[tuple[int, int, str]]:
    """A range without what is shown of it."""
    for sequence in sorted(shown_sequences):
        if first <= sequence <= last:
            if first < sequence:
                yield first, sequence - 1, why
            first = sequence + 1
    if first <= last:
        yield first, last, why
