"""The board part of a pack: as many items as fit into its share of the budget, the most important first."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.language.messages.attribution import plain_label
from langchain_supabase_memory.language.messages.content import indented
from langchain_supabase_memory.language.messages.fence import escaped
from langchain_supabase_memory.operations.boards.board import WRITTEN_BY, BoardItem, board_item
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, OPEN_FIRST, BoardItemKind
from langchain_supabase_memory.operations.boards.perspective import is_persons, ranked
from langchain_supabase_memory.operations.boards.schema import AuthorKind
from langchain_supabase_memory.operations.summaries import shorten

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.recall_part import RecallPart
    from langchain_supabase_memory.context.token_meter import Meter, Sizes
    from langchain_supabase_memory.operations.boards.perspective import Perspective
    from langchain_supabase_memory.settings import ContextBudget
    from langchain_supabase_memory.values import ConversationKey

MESSAGE_ID: Final = "lc_supabase_memory_board"
"""The id of the message that carries the board part."""

_CHARACTERS_AN_ITEM: Final = 60
"""The approximate minimum size of an item; it determines how many items of a kind to read."""

_MAX_ITEMS: Final = 40
"""The maximum number of items of a kind to read."""

_MAX_ORDERED: Final = 100
"""The maximum number of items of a kind to read for a perspective, which may show an old item first."""

LONGEST_NOTES: Final = 500
"""The most characters of a board's notes."""

_ORDER: Final[tuple[BoardItemKind, ...]] = tuple(each.kind for each in OPEN_FIRST)
_PLACES: Final[Mapping[BoardItemKind, int]] = {kind: place for place, kind in enumerate(_ORDER, 1)}


def max_items_of(budget: ContextBudget, share: float | None, perspective: Perspective | None = None) -> int:
    """Return how many items of each kind to read for a share of a budget; 0 if there is no share."""
    if not share:
        return 0
    if perspective is not None:
        return _MAX_ORDERED
    return max(1, min(_MAX_ITEMS, int(budget.about_characters * share) // _CHARACTERS_AN_ITEM))


@dataclass(frozen=True)
class BoardPart:
    """The board part of a pack.

    Attributes:
        items: The most important first: pinned items, open action items, pending questions, facts by importance and
            recency, entities, topics; or in the order of a perspective.
        edited_summary: A person's summary of the conversation; cut if it is long.
        editor_kind: Who wrote it: `person`, `application` or `import`.
        context_notes: Notes on how to continue; may be empty.
        left_out: How many items were read but did not fit.
        has_more: Whether the board has more items than were read for this budget.
        whole_summary: The person's summary as it was read.
        rendered: The lines of items that were rendered, by their ids, and as they stand in a message: a room for them
            is looked for several times.
        places: The place of each item in a perspective, by its id; `None` without one.
        version: The version of the board that was read.
    """

    items: list[BoardItem] = field(default_factory=list)
    edited_summary: str | None = field(default=None, repr=False)
    editor_kind: AuthorKind = "person"
    context_notes: str = field(default="", repr=False)
    left_out: int = 0
    has_more: bool = False
    whole_summary: str | None = field(default=None, repr=False)
    rendered: dict[str, tuple[str, str]] = field(default_factory=dict, repr=False, compare=False)
    places: Mapping[str, int] | None = field(default=None, repr=False, compare=False)
    version: int = 0

    @classmethod
    def from_document(
        cls,
        document: Mapping[str, Any] | None,
        max_items: int,
        superseded: Collection[int] = (),
        perspective: Perspective | None = None,
    ) -> BoardPart:
        """Create the part from a board's document.

        Args:
            document: The board as `memory_context` returns it; `None` without one.
            max_items: The number of items of a kind that were requested.
            superseded: Messages on another branch of the graph; items based only on them are left out.
            perspective: The order of the items, and the kinds that are not shown; the usual order without one.
        """
        if document is None:
            return cls()
        items = [board_item(row) for row in document["items"]]
        counts = [sum(each.kind == kind for each in items) for kind in _ORDER]
        gone = set(superseded)
        here = [each for each in items if is_persons(each) or not each.sequences or not gone.issuperset(each.sequences)]
        notes = " ".join((document["context_notes"] or "").split())
        summary = (document["edited_summary"] or "").strip() or None
        ordered = sorted(here, key=item_weight) if perspective is None else ranked(here, perspective)
        return cls(
            items=ordered,
            edited_summary=summary,
            whole_summary=summary,
            editor_kind=document["editor_kind"] or "person",
            context_notes=shorten(notes, LONGEST_NOTES),
            has_more=any(count >= max_items for count in counts),
            places=None if perspective is None else {item.id: place for place, item in enumerate(ordered)},
            version=document.get("version", 0),
        )

    def is_part_of(self, board: BoardPart) -> bool:
        """Return whether a board still has all of this part, with the same words: an edit or a deletion takes it away.

        Args:
            board: All that is read of the board now.
        """
        versions = {(each.id, each.version) for each in board.items}
        is_same = self.whole_summary == board.whole_summary and self.context_notes in ("", board.context_notes)
        return is_same and all((each.id, each.version) in versions for each in self.items)

    def __bool__(self) -> bool:
        """Return whether the part is not empty."""
        return bool(self.items or self.edited_summary or self.context_notes)

    def without_shown(
        self, shown_sequences: Collection[int], recalled: Mapping[int, str] = MappingProxyType({})
    ) -> BoardPart:
        """Return the part without items that are visible elsewhere; people's items stay.

        Args:
            shown_sequences: The messages that are shown in full.
            recalled: The recalled text of messages, by number.
        """
        kept = [each for each in self.items if is_persons(each) or not _is_read(each, shown_sequences, recalled)]
        return replace(self, items=kept)

    @property
    def has_content(self) -> str:
        """The number of items and of items left out, in words."""
        counted = pluralize(len(self.items), "item")
        left = [f"{self.left_out} left out"] if self.left_out else []
        left += ["more on the board"] if self.has_more else []
        return ", ".join([counted, *left])

    @cached_property
    def message(self) -> BaseMessage | None:
        """The part as a fenced message that goes before the user's; `None` if it is empty."""
        if not self:
            return None
        shown = [shown for _, shown in self._rendered()]
        return fence.message(fence.fenced([fence.element_of_lines("board", shown)]), MESSAGE_ID)

    def lines(self) -> list[str]:
        """Return the part in the text form."""
        return [_TITLE, *(line for line, _ in self._rendered()), ""] if self else []

    def forms(self, meter: Meter) -> Sizes:
        """Return the sizes of the part."""
        return meter.sizes(self.message, self.lines())

    def fitting(self, room: Sizes, meter: Meter) -> BoardPart:
        """Return as much of the part as fits, the most important first; the rest is counted.

        Args:
            room: The maximum sizes.
            meter: The meter.
        """
        whole = self
        if self.edited_summary is not None:
            # The summary gets at most half of the room; the rest is for items.
            characters = max(meter.room_in_characters(min(room.as_messages, room.as_text)) // 2, 1)
            whole = replace(self, edited_summary=shorten(self.edited_summary, characters))
        parts = whole._parts()
        kept = whole._places_that_fit(parts, whole._left_of(room, meter), meter)
        made = whole._with_parts([parts[place] for place in kept])
        while kept and not made.forms(meter).fits(room):  # it was an estimate
            kept.pop()
            made = whole._with_parts([parts[place] for place in kept])
        return made

    def extended(self, read: BoardPart, room: Sizes, meter: Meter) -> BoardPart:
        """Return the part with as many further items as fit.

        Args:
            read: All items, the most important first.
            room: The maximum sizes of the whole part.
            meter: The meter.
        """
        there = {each.id for each in self.items}
        further = [each for each in read.items if each.id not in there]
        left = self._left_of(room, meter) - sum(meter.estimate_line(shown) for _, shown in self._rendered())
        added = [further[place] for place in self._places_that_fit(further, left, meter)]
        while True:
            items = read._ordered([*self.items, *added])
            made = replace(self, items=items, left_out=len(read.items) - len(items), places=read.places)
            if not added or made.forms(meter).fits(room):  # it was an estimate
                return made
            added.pop()

    def _ordered(self, items: Sequence[BoardItem]) -> list[BoardItem]:
        """Return items of this board in its order."""
        places = self.places
        return sorted(items, key=item_weight if places is None else lambda item: places[item.id])

    def _left_of(self, room: Sizes, meter: Meter) -> int:
        """Estimate what a room has for lines."""
        # In a message the last line has no break; a text ends with an empty line.
        return min(room.as_messages - meter.estimate_line(_FRAME) + 2, room.as_text - meter.estimate_line(_TITLE) - 1)

    def _places_that_fit(self, parts: Sequence[BoardItem | str], left: int, meter: Meter) -> list[int]:
        """Choose parts, in their order: a long one does not keep out the next ones, of which a few are tried."""
        kept: list[int] = []
        misses = 0
        for place, part in enumerate(parts):
            weight = meter.estimate_line(self._line(part)[1])
            if weight <= left:
                kept.append(place)
                left -= weight
            elif (misses := misses + 1) > TRIES:
                break
        return kept

    def _parts(self) -> list[BoardItem | str]:
        """Return everything by importance; the two texts by their names."""
        before = _NOTES_AT if self.places is None else _NOTES_AT_FIRST
        urgent = [each for each in self.items if _place(each) < before]
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

    def _rendered(self) -> list[tuple[str, str]]:
        """Return a line for each, and as it stands in a message; only its first line is not indented."""
        return [self._line(each) for each in self._parts()]

    def _line(self, part: BoardItem | str) -> tuple[str, str]:
        if isinstance(part, str):
            text = f"- notes: {self.context_notes}"
            if part == "edited_summary":
                text = f"- written {WRITTEN_BY[self.editor_kind]}: {indented(self.edited_summary or '')}"
            return text, escaped(text)
        found = self.rendered.get(part.id)
        if found is None:
            text = line(part)
            found = self.rendered[part.id] = text, escaped(text)
        return found


def line(item: BoardItem) -> str:
    """Render an item as a line, such as `- fact: Ana is allergic to peanuts [message 12]`."""
    first, last = (item.sequences[0], item.sequences[-1]) if item.sequences else (None, None)
    where = [] if first is None else [f"message {first}" if first == last else f"messages {first}, {last}"]
    where += [f"said by {who}"] if (who := author(item)) is not None else []
    where += [item.written_by] if item.written_by is not None else []
    return f"{item_text(item)} [{', '.join(where)}]" if where else item_text(item)


def author(item: BoardItem) -> str | None:
    """Return what a space calls who said an item; `None` outside of spaces, and where nobody is known."""
    label = item.author_name or item.author_id
    return None if label is None else plain_label(label)


def item_text(item: BoardItem) -> str:
    """Render an item without its evidence, such as `- fact: Ana is allergic to peanuts`."""
    kind = BOARD_KINDS[item.kind]
    label = item.type if kind.types and item.type else kind.label
    return " ".join(f"- {label}: {item.text}".split())


def _is_read(item: BoardItem, shown_sequences: Collection[int], recalled: Mapping[int, str]) -> bool:
    """Return whether it is visible elsewhere: all its messages, and the quote in the first of them."""
    if not item.sequences or not all(number in shown_sequences or number in recalled for number in item.sequences):
        return False
    first = item.sequences[0]
    # The recalled part of a long message may not contain the quote.
    return first in shown_sequences or not item.quote or " ".join(item.quote.split()) in recalled[first]


def item_weight(item: BoardItem) -> tuple[int, float, float]:
    """Return the sort key: pinned, open actions, questions, facts by importance and recency, entities, topics."""
    important = item.importance if BOARD_KINDS[item.kind].is_rated else 0.0
    return _place(item), -important, -item.last_seen_at.timestamp()


def _place(item: BoardItem) -> int:
    return 0 if item.pinned else _PLACES[item.kind]


_NOTES_AT: Final = 1 + sum(each.can_close for each in OPEN_FIRST)
"""The notes come before items with this place in `item_weight`."""

_NOTES_AT_FIRST: Final = 1
"""The same in a perspective: right behind what is pinned, for they are for every agent."""

TRIES: Final = 8
"""How many items are tried after the first that does not fit."""

_FRAME: Final = fence.fenced([fence.element("board", "")])
_TITLE: Final = "Board:"


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
    """Allocate the room that the history leaves to the board and recalled passages, without repeating visible text.

    Items that are visible in recalled passages make room for other items, and then for more passages.


    Args:
        board: The items that fit into the board's share.
        read: All items that were read.
        recalled: All passages that were found.
        shown_sequences: The messages that the history shows in full.
        key: The conversation.
        room: The room that the history leaves of the budget.
        share: The maximum size of the board.
        meter: The meter.
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
        # Recalled passages stay, so their items are never needed again, and the loop ends.
        kept = recalled.fitting(room.minus(left.forms(meter)), meter, kept.chunks)
        fewer = left.without_shown(shown_sequences, kept.read(key))
        if len(fewer.items) == len(left.items):
            return left, kept
        left = fewer
