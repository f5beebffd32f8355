"""The part of a pack that comes from the board: what of it fits into its share of the budget, the weightiest first."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.language.messages.content import indented
from langchain_supabase_memory.operations.boards.board import WRITTEN_BY, BoardItem, board_item
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, OPEN_FIRST, BoardItemKind
from langchain_supabase_memory.operations.boards.schema import AuthorKind
from langchain_supabase_memory.operations.summaries import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.recall_part import RecallPart
    from langchain_supabase_memory.context.token_meter import Meter, Sizes
    from langchain_supabase_memory.settings import ContextBudget
    from langchain_supabase_memory.values import ConversationKey

MESSAGE_ID: Final = "lc_supabase_memory_board"
"""The id of the message that carries what a pack shows of the board."""

_CHARACTERS_AN_ITEM: Final = 60
"""About what an item takes at least: by it is known how many of a kind are worth reading."""

_MOST: Final = 40
"""The most items of a kind that are read."""

_LONGEST_NOTES: Final = 500
_ORDER: Final[tuple[BoardItemKind, ...]] = tuple(each.kind for each in OPEN_FIRST)


def most_items(budget: ContextBudget) -> int:
    """How many items of each kind are read for a budget; 0 if it has no room for a board."""
    if not budget.board:
        return 0
    return max(1, min(_MOST, int(budget.about_characters * budget.board) // _CHARACTERS_AN_ITEM))


@dataclass(frozen=True)
class BoardPart:
    """What a pack shows of the board.

    Attributes:
        items: The weightiest first: what a person pinned, open action items, pending questions, facts by importance
            and by when they were last said, entities, topics.
        edited_summary: What a person wrote about the conversation; cut if it is long.
        editor_kind: Who wrote that: `person`, `application` or `import`.
        context_notes: How to go on; empty if there is nothing to say.
        left_out: How many items were read and have no room.
        has_more: Whether the board has more items than were read for this budget.
    """

    items: list[BoardItem] = field(default_factory=list)
    edited_summary: str | None = field(default=None, repr=False)
    editor_kind: AuthorKind = "person"
    context_notes: str = field(default="", repr=False)
    left_out: int = 0
    has_more: bool = False

    @classmethod
    def from_document(
        cls, document: Mapping[str, Any] | None, max_items: int, superseded: Collection[int] = ()
    ) -> BoardPart:
        """All that was read of a board.

        Args:
            document: The board as `memory_context` gives it; `None` without one.
            max_items: How many items of a kind were asked for.
            superseded: Messages that do not belong to this branch of a graph, nor does what was read from them alone.
        """
        if document is None:
            return cls()
        items = [board_item(row) for row in document["items"]]
        counts = [sum(each.kind == kind for each in items) for kind in _ORDER]
        gone = set(superseded)
        here = [each for each in items if is_persons(each) or not each.sequences or not gone.issuperset(each.sequences)]
        notes = " ".join((document["context_notes"] or "").split())
        return cls(
            items=sorted(here, key=_weight),
            edited_summary=(document["edited_summary"] or "").strip() or None,
            editor_kind=document["editor_kind"] or "person",
            context_notes=shorten(notes, _LONGEST_NOTES),
            has_more=any(count >= max_items for count in counts),
        )

    def __bool__(self) -> bool:
        """Whether anything is shown."""
        return bool(self.items or self.edited_summary or self.context_notes)

    def without_shown(
        self, shown_sequences: Collection[int], recalled: Mapping[int, str] = MappingProxyType({})
    ) -> BoardPart:
        """It without what can be read elsewhere; what people wrote, edited or pinned stays.

        Args:
            shown_sequences: The messages that are shown whole.
            recalled: The words that are recalled of messages, by their numbers.
        """
        kept = [each for each in self.items if is_persons(each) or not _is_read(each, shown_sequences, recalled)]
        return replace(self, items=kept)

    @property
    def has_content(self) -> str:
        """How much it is, and how much is not, in words."""
        counted = f"{len(self.items)} item" + ("s" if len(self.items) != 1 else "")
        left = [f"{self.left_out} left out"] if self.left_out else []
        left += ["more on the board"] if self.has_more else []
        return ", ".join([counted, *left])

    @cached_property
    def message(self) -> BaseMessage | None:
        """It as a fenced message, to stand before the user's; `None` if there is nothing."""
        if not self:
            return None
        return fence.message(fence.fenced([fence.element("board", "\n".join(self._rendered()))]), MESSAGE_ID)

    def lines(self) -> list[str]:
        """It in a text form."""
        return ["Board:", *self._rendered(), ""] if self else []

    def forms(self, meter: Meter) -> Sizes:
        """What it weighs in each of its forms."""
        return meter.sizes(self.message, self.lines())

    def fitting(self, room: Sizes, meter: Meter) -> BoardPart:
        """As much of it as fits into a room: what weighs most comes first, and what is left out is counted.

        Args:
            room: The most it may weigh.
            meter: What weighs it.
        """
        whole = self
        if self.edited_summary is not None:
            # Half of the room at most: the rest is for items.
            characters = max(meter.room_in_characters(min(room.as_messages, room.as_text)) // 2, 1)
            whole = replace(self, edited_summary=shorten(self.edited_summary, characters))
        parts = whole._parts()

        def fits(count: int, *others: int) -> bool:
            only = whole._with_parts([*parts[:count], *(parts[place] for place in others)])
            return only.forms(meter).fits(room)

        count = bisect_left(range(1, len(parts) + 1), True, key=lambda each: not fits(each))
        more: list[int] = []
        # One that is long does not keep out the next.
        for place in range(count + 1, min(count + 1 + _TRIES, len(parts))):
            if fits(count, *more, place):
                more.append(place)
        return whole._with_parts([*parts[:count], *(parts[place] for place in more)])

    def extended(self, read: BoardPart, room: Sizes, meter: Meter) -> BoardPart:
        """It with as many further items as have room beside its own.

        Args:
            read: All the items that there are, the weightiest first.
            room: The most that all of it may weigh.
            meter: What weighs it.
        """
        items, misses = list(self.items), 0
        for item in read.items:
            if item in items:
                continue
            more = sorted([*items, item], key=_weight)
            if replace(self, items=more).forms(meter).fits(room):
                items = more
            elif (misses := misses + 1) == _TRIES:
                break
        return replace(self, items=items, left_out=len(read.items) - len(items))

    def _parts(self) -> list[BoardItem | str]:
        """Everything in the order of its weight; the two texts by their names."""
        urgent = [each for each in self.items if _weight(each)[0] < _NOTES_AT]
        return [
            *(["edited_summary"] if self.edited_summary else []),
            *urgent,
            *(["context_notes"] if self.context_notes else []),
            *self.items[len(urgent) :],
        ]

    def _with_parts(self, parts: Sequence[BoardItem | str]) -> BoardPart:
        items = [each for each in parts if not isinstance(each, str)]
        return replace(
            self,
            items=items,
            edited_summary=self.edited_summary if "edited_summary" in parts else None,
            context_notes=self.context_notes if "context_notes" in parts else "",
            left_out=self.left_out + len(self.items) - len(items),
        )

    def _rendered(self) -> list[str]:
        """A line for each; only its first line begins at the margin."""
        texts = {
            "edited_summary": f"- written {WRITTEN_BY[self.editor_kind]}: {indented(self.edited_summary or '')}",
            "context_notes": f"- notes: {self.context_notes}",
        }
        return [texts[each] if isinstance(each, str) else line(each) for each in self._parts()]


def line(item: BoardItem) -> str:
    """An item as a line, such as `- fact: Ana is allergic to peanuts [message 12]`."""
    kind = BOARD_KINDS[item.kind]
    label = item.type if kind.types and item.type else kind.label
    first, last = (item.sequences[0], item.sequences[-1]) if item.sequences else (None, None)
    where = [] if first is None else [f"message {first}" if first == last else f"messages {first}, {last}"]
    where += [item.written_by] if item.written_by is not None else []
    said = " ".join(f"- {label}: {item.text}".split())
    return f"{said} [{', '.join(where)}]" if where else said


def is_persons(item: BoardItem) -> bool:
    """Whether a person or the application wrote it, changed it or holds on to it."""
    return item.pinned or item.edited_at is not None


def _is_read(item: BoardItem, shown_sequences: Collection[int], recalled: Mapping[int, str]) -> bool:
    """Whether it can be read elsewhere: each of its messages, and in the first of them the words that say it."""
    if not item.sequences or not all(number in shown_sequences or number in recalled for number in item.sequences):
        return False
    first = item.sequences[0]
    # Of a long message a part may be recalled that says something else.
    return first in shown_sequences or not item.quote or " ".join(item.quote.split()) in recalled[first]


def _weight(item: BoardItem) -> tuple[int, float, float]:
    """What comes first: pinned, open actions, questions, facts by importance and recency, entities, topics."""
    place = 0 if item.pinned else 1 + _ORDER.index(item.kind)
    important = item.importance if BOARD_KINDS[item.kind].is_rated else 0.0
    return place, -important, -item.last_seen_at.timestamp()


_NOTES_AT: Final = 1 + sum(each.can_close for each in OPEN_FIRST)
"""Before what `_weight` gives this place the notes stand."""

_TRIES: Final = 8
"""So many items after the first that has no room are tried."""


def allocate(
    board: BoardPart,
    read: BoardPart,
    recalled: RecallPart,
    shown_sequences: Collection[int],
    key: ConversationKey,
    room: Sizes,
    share: int,
    meter: Meter,
) -> tuple[BoardPart, RecallPart]:
    """The board and what was recalled, in the room that the history leaves; neither says what can be read elsewhere.

    Items of the board that can be read in what was recalled make room for other items, and then for more that was
    recalled.

    Args:
        board: What of it has room in its share.
        read: All that was read of it.
        recalled: All that was found.
        shown_sequences: The messages that the history shows whole.
        key: The conversation.
        room: What the history leaves of the budget.
        share: The most that the board may weigh.
        meter: What weighs.
    """
    recalled = recalled.without_shown(shown_sequences, key)
    kept = recalled.fitting(room.minus(board.forms(meter)), meter)
    left = board.without_shown(shown_sequences, kept.read(key))
    if len(left.items) == len(board.items):
        return board, kept
    left = left.extended(
        read.without_shown(shown_sequences, kept.read(key)), room.minus(kept.forms(meter)).is_within(share), meter
    )
    while True:
        # What is recalled now stays, so that what it says needs no item; so this ends.
        kept = recalled.fitting(room.minus(left.forms(meter)), meter, kept.chunks)
        fewer = left.without_shown(shown_sequences, kept.read(key))
        if len(fewer.items) == len(left.items):
            return left, kept
        left = fewer
