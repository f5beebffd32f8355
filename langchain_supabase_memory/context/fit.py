"""Which messages stand in a pack. Pure: it reads nothing and asks nobody.

With a window, a pack begins where a segment ends, and shows everything since: it moves only with a new segment, so that
a provider's cache holds. Where more than the window is not summarized, it begins at a multiple of a step.

Without a window, or where the turn under way takes the room, the newest blocks go in as long as they fit, with the
question of the turn in which they begin; the next one is cut where enough room is left for it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Final

from langchain_core.messages import HumanMessage

from langchain_supabase_memory.context.reasons import (
    BEYOND,
    CUT,
    FOR_RECALLED,
    LEFT_TO_RECALL,
    MEDIA,
    NO_ROOM,
    TOO_MANY,
)
from langchain_supabase_memory.context.summary_part import SummaryPart, note, opening
from langchain_supabase_memory.context.token_meter import Sizes
from langchain_supabase_memory.context.truncate import truncate
from langchain_supabase_memory.json_types import AnyMessage
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.language.extractive.quotes import carries_a_summary, is_bare
from langchain_supabase_memory.language.messages.blocks import Block, PromptEntry
from langchain_supabase_memory.operations.summaries import shorten
from langchain_supabase_memory.settings import FEWEST_IN_STEPS, WINDOW_SHARE, WINDOW_STEP

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from langchain_supabase_memory.context.history import History
    from langchain_supabase_memory.context.token_meter import Meter
    from langchain_supabase_memory.values import Segment

_SHORTEST_SUMMARY: Final = 40
_QUOTES: Final = 0.04
"""The share of the budget that quotes have which nobody asked for, where those that are asked for are recalled."""
_SHORTEST_QUOTES: Final = 200
_TRIES: Final = 4
"""How often a cut block is made smaller by what it is too large."""
_LATE: Final = 1.2
"""How much longer than the window the history gets before it steps: a segment is made behind the answer meanwhile."""
_ROOM_TO_CUT: Final = 4
"""An older block is cut to fit if one part of the budget in so many is left for it."""


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
        is_stepped: Whether it begins at a step, so that more would fit.
    """

    head: SummaryPart = field(default_factory=SummaryPart)
    head_message: AnyMessage | None = None
    recent: list[PromptEntry] = field(default_factory=list)
    current: list[PromptEntry] = field(default_factory=list)
    omitted: dict[int, str] = field(default_factory=dict)
    ranges: list[tuple[int, int, str]] = field(default_factory=list)
    truncated: list[int] = field(default_factory=list)
    forms: Sizes = field(default_factory=Sizes)
    is_stepped: bool = False

    @property
    def weight(self) -> int:
        """What the pack and the current turn weigh together."""
        return self.forms.heavier

    @property
    def gives_room(self) -> bool:
        """Whether messages are left out for what is recalled in this turn."""
        return FOR_RECALLED in self.omitted.values() or any(why == FOR_RECALLED for _, _, why in self.ranges)

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

    segments = [*history.segments] or [None]
    newest = segments[-1]
    for segment in segments:
        after = -1 if segment is None else segment.to_sequence
        is_read = history.unread_from is None or after + 1 >= lowest
        recalls = after <= history.recallable
        choice = _Choice(segment, _later(made, after, start), start, meter, max_messages, recalls, window)
        # Before the first segment there is nothing to go back to: everything is shown as long as it fits.
        longest = math.inf if window is None else window * (_LATE if segment is newest else 1)
        is_within = choice.characters <= longest or segments == [None]
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
        result = self._build(self._head(note(None)) if self.is_left_to_recall else self._bare_head, self.later)
        tells_all = self.segment is None or self.is_left_to_recall or result.head.summary is not None
        return result if tells_all and self._fits(result) else None

    @cached_property
    def characters(self) -> int:
        """Characters of the blocks of the history, without the current turn."""
        return _characters(self.later, self.start)

    def stepped(self, window: int, total: int) -> FittedContext | None:
        """The blocks from a multiple of a step on, so that the beginning seldom moves; `None` if cutting shows more.

        Args:
            window: The most characters of the history's messages.
            total: Characters of all stored messages since the segment, those that were not read among them.
        """
        if self.max_messages is not None and self.max_messages < FEWEST_IN_STEPS:
            return None
        step = max(1, int(window * WINDOW_STEP))
        total = max(total, self.characters)
        first = self._first_by_count()
        least = min(window - step, _characters(self._since(-total, first), self.start)) // 2
        head = self._head(note(self.max_messages))
        boundaries = [*range(step * max(0, -(-(total - window) // step)), total, step)]
        # A turn that takes the room moves it by half of what is left, so that it moves seldom, too.
        halves = [boundaries[-1] + (total - boundaries[-1]) * part // 4 for part in (2, 3)] if boundaries else []
        for boundary in [*boundaries, *halves]:
            shown = self._since(boundary - (total - self.characters), first)
            held = _characters(shown, self.start)
            if not held or (held < least and boundary in boundaries):
                return None  # a message longer than a step lies there, and is better cut
            result = self._build(head, shown)
            if self._fits(result):
                self.why = TOO_MANY if first and boundary == boundaries[0] else BEYOND
                result.is_stepped = True
                return result
        return None

    def _first_by_count(self) -> int:
        """The sequence from which `max_messages` shows messages: it moves by half of them; 0 where it shows all."""
        numbers = _sequences(entry for block in self.later if block.place < self.start for entry in block.entries)
        if self.max_messages is None or not numbers:
            return 0
        base = 0 if self.segment is None else self.segment.to_sequence + 1
        count, step = max(numbers) + 1 - base, max(1, self.max_messages // 2)
        return base + step * -(-(count - self.max_messages) // step) if count > self.max_messages else 0

    def _since(self, boundary: int, first: int) -> list[Block]:
        """The blocks that begin at a character of the history and at a sequence, or behind, from a question if any."""
        offset, starts, end = 0, [], len(self.later)
        for at, block in enumerate(self.later):
            if block.place >= self.start:
                end = at
                break
            if offset >= boundary and min(_sequences(block.entries), default=first) >= first:
                starts.append(at)
            offset += sum(entry.characters for entry in block.entries)
        return self.later[next((at for at in starts if at in self.questions), starts[0] if starts else end) :]

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
        message = head.message
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
        return self.only_quotes and self._bare_head.summary is None

    @cached_property
    def _bare_head(self) -> SummaryPart:
        """What can be said of what came before, without a note."""
        return self._head("")

    def _head(self, left_out: str) -> SummaryPart:
        """What can be said of what came before in half of the room there is; less where there is too little."""
        held = [*self._blocks_shown(0), *(Block(block.entries[:1], 0) for block in self._fixed if block.unanswered)]
        room = (self.meter.limit - self.meter.total([block.entries[0] for block in held])) // 2

        if self.segment is not None:
            characters, shortest = self.meter.room_in_characters(room), _SHORTEST_SUMMARY
            if self.only_quotes:
                # The window is a share of the whole budget, which no other part of a pack makes smaller.
                whole = self.meter.room_in_characters(self.meter.limit)
                characters = min(
                    characters, int(_QUOTES * (whole if self.window is None else self.window / WINDOW_SHARE))
                )
                shortest = _SHORTEST_QUOTES
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
        return self.meter.sizes_with_frame(head, head.message, []).heavier


def _later(blocks: list[Block], after: int, start: int) -> list[Block]:
    """The blocks after a sequence, the current turn, and the question of what is under way, if it is covered."""
    first = next((at for at, block in enumerate(blocks) if block.place >= start or _last(block) > after), len(blocks))
    later = blocks[first:]
    if later and not any(block.is_question for block in later):
        later = [*[block for block in blocks[:first] if block.is_question][-1:], *later]
    return later


def _characters(blocks: Iterable[Block], start: int) -> int:
    """Characters of the blocks of the history, without the current turn."""
    return sum([entry.characters for block in blocks if block.place < start for entry in block.entries])


def _last(block: Block) -> float:
    """The number of a block's last message; one that is not stored yet is newer than all."""
    return max(_sequences(block.entries), default=math.inf)


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
