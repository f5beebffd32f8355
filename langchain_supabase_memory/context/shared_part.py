"""The shared part of a pack: what holds on the boards of spaces, and of the user's conversations with other agents."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Any, Final

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.context.board import TRIES, author, item_text, item_weight, max_items_of
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.json_types import Named
from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.language.messages.fence import escaped
from langchain_supabase_memory.operations.boards.board import BoardItem, board_item
from langchain_supabase_memory.operations.boards.perspective import ranked
from langchain_supabase_memory.operations.manifests.parts import SharedKind
from langchain_supabase_memory.operations.recall.ranges import zone
from langchain_supabase_memory.values import as_id, as_space_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.token_meter import Meter, Sizes
    from langchain_supabase_memory.operations.boards.perspective import Perspective
    from langchain_supabase_memory.settings import ContextBudget

MESSAGE_ID: Final = "lc_supabase_memory_shared"
"""The id of the message that carries the shared part."""

MAX_BOARDS: Final = 10
"""The maximum number of spaces, and of agents, that a prompt reads boards of."""


_FEW_ITEMS: Final = 10
"""How many items of a kind to read of each of many boards, as far as the share has room for so many."""


@dataclass(frozen=True)
class SharedRequest:
    """Whose boards a prompt reads beside that of its conversation.

    Attributes:
        spaces: The ids of spaces.
        agents: Other agents of the same user; what is asked is recalled from the conversations with them, too.
        time_zone: The reader's time zone, for dates.
    """

    spaces: tuple[str, ...] = ()
    agents: tuple[str, ...] = ()
    time_zone: tzinfo = field(default=UTC, repr=False)

    def argument(self, budget: ContextBudget) -> dict[str, Any] | None:
        """Return the argument of `memory_context`; `None` if nothing is asked for."""
        if not self.spaces and not self.agents:
            return None
        given = {"spaces": list(self.spaces), "agents": list(self.agents)}
        asked: dict[str, Any] = {name: ids for name, ids in given.items() if ids}
        most, boards = max_items_of(budget, budget.shared), len(self.spaces) + len(self.agents)
        return asked | {"items": max(1, min(most, _FEW_ITEMS), most // boards)}


NOTHING_SHARED: Final = SharedRequest()
"""The request for no other board."""


def shared_request(
    spaces: Sequence[str], agents: Sequence[str], time_zone: str | tzinfo | None = None
) -> SharedRequest:
    """Check whose boards a prompt reads.

    Args:
        spaces: The ids of at most 10 spaces.
        agents: At most 10 agents.
        time_zone: The reader's time zone, for dates; UTC by default.

    Raises:
        ConfigurationError: They are too many, or no list.
        InvalidInputError: One of them is no id of a space, or no id of an agent.
    """
    for name, given in (("spaces", spaces), ("agents", agents)):
        if not isinstance(given, (list, tuple)):
            raise wrong_type(name, "a list of ids", given, f"Pass {name}=[...].")
        if len(given) > MAX_BOARDS:
            raise ConfigurationError(
                f"{name} has {len(given):,} ids.", hint=f"Pass at most {MAX_BOARDS}: a prompt has room for few."
            )
    return SharedRequest(
        tuple(dict.fromkeys(map(as_space_id, spaces))),
        tuple(dict.fromkeys(as_id("Each of agents", agent) for agent in agents)),
        zone(time_zone),
    )


@dataclass(frozen=True)
class SharedBoard:
    """The board of a space or of another agent.

    Attributes:
        kind: Whose it is: see `SharedKind`.
        id: The id of the space, or the agent.
        name: What the space is called; `None` of an agent, or if it may not be read.
        is_refused: Whether it is a space that the user is not in.
        items: What holds there, the most important first; in a pack those that fit.
        left_out: How many items were read but did not fit.
    """

    kind: SharedKind
    id: str
    name: str | None = field(default=None, repr=False)
    is_refused: bool = False
    items: tuple[BoardItem, ...] = field(default=(), repr=False)
    left_out: int = 0

    @property
    def heading(self) -> str:
        """The line above its items."""
        said = "With the agent" if self.kind == "agent" else "In the space"
        return f"{said} {' '.join((self.name or self.id).split())}:"


@dataclass(frozen=True)
class SharedPart:
    """The shared part of a pack.

    Attributes:
        boards: The boards that were asked for, in that order.
        time_zone: The reader's time zone, for dates; UTC by default.
    """

    boards: tuple[SharedBoard, ...] = ()
    time_zone: Annotated[str | tzinfo | None, Named] = field(default=None, repr=False)

    @classmethod
    def from_document(
        cls,
        document: Sequence[Mapping[str, Any]] | None,
        time_zone: tzinfo = UTC,
        perspective: Perspective | None = None,
    ) -> SharedPart:
        """Create the part from what `memory_context` returns.

        Args:
            document: The boards; `None` if none was asked for.
            time_zone: The reader's time zone, for dates.
            perspective: The order of each board's items; the usual one without it.
        """
        return cls(tuple(_shared_board(row, perspective) for row in document or ()), time_zone)

    def __bool__(self) -> bool:
        """Return whether the part is not empty."""
        return any(board.items for board in self.boards)

    @property
    def refused(self) -> list[str]:
        """The spaces that the user is not in."""
        return [board.id for board in self.boards if board.is_refused]

    @property
    def has_content(self) -> str:
        """What it holds, in words."""
        shown = [board for board in self.boards if board.items]
        items, boards = sum(len(board.items) for board in shown), len(shown)
        counted = f"{pluralize(items, 'item')} of {pluralize(boards, 'board')}"
        left = sum(board.left_out for board in self.boards)
        return f"{counted}, {left} left out" if left else counted

    def is_part_of(self, read: SharedPart) -> bool:
        """Return whether all of it still holds, with the same words, and may be read.

        Args:
            read: All that is read of the boards now.
        """
        versions = {(board.kind, board.id, each.id, each.version) for board in read.boards for each in board.items}
        return all((board.kind, board.id, each.id, each.version) in versions
                   for board in self.boards for each in board.items)  # fmt: skip

    def with_refusals_of(self, read: SharedPart) -> SharedPart:
        """Return the part with the spaces as refused that may not be read now.

        Args:
            read: All that is read of the boards now.
        """
        refused = set(read.refused)
        boards = (replace(each, is_refused=each.kind == "space" and each.id in refused) for each in self.boards)
        return replace(self, boards=tuple(boards))

    @cached_property
    def message(self) -> BaseMessage | None:
        """The part as a fenced message that goes before the user's; `None` if it is empty."""
        if not self:
            return None
        return fence.message(fence.fenced([fence.element("shared", "\n".join(self._lines))]), MESSAGE_ID)

    def lines(self) -> list[str]:
        """Return the part in the text form."""
        return [_TITLE, *self._lines, ""] if self else []

    def forms(self, meter: Meter) -> Sizes:
        """Return the sizes of the part."""
        return meter.sizes(self.message, self.lines())

    def fitting(self, room: Sizes, meter: Meter) -> SharedPart:
        """Return as much of the part as fits: the first item of each board, then the second; the rest is counted.

        Args:
            room: The maximum sizes.
            meter: The meter.
        """
        if not self:
            return self
        left = min(room.as_messages - meter.estimate_line(_FRAME) + 2, room.as_text - meter.estimate_line(_TITLE) - 1)
        order = sorted((rank, at) for at, board in enumerate(self.boards) for rank in range(len(board.items)))
        kept: list[tuple[int, int]] = []
        headed: set[int] = set()
        misses = 0
        for rank, at in order:
            board = self.boards[at]
            weight = meter.estimate_line(escaped(self._line(board.items[rank])))
            weight += 0 if at in headed else meter.estimate_line(escaped(board.heading))
            if weight <= left:
                kept.append((rank, at))
                headed.add(at)
                left -= weight
            elif (misses := misses + 1) > TRIES + len(self.boards):
                break
        made = self._with_items(kept)
        while kept and not made.forms(meter).fits(room):  # it was an estimate
            kept.pop()
            made = self._with_items(kept)
        return made

    def _with_items(self, ranks: Sequence[tuple[int, int]]) -> SharedPart:
        boards = []
        for at, board in enumerate(self.boards):
            items = tuple(board.items[rank] for rank, place in ranks if place == at)
            boards.append(replace(board, items=items, left_out=board.left_out + len(board.items) - len(items)))
        return replace(self, boards=tuple(boards))

    @cached_property
    def _lines(self) -> list[str]:
        """A line for each item, below a line for its board."""
        shown = [board for board in self.boards if board.items]
        return [text for board in shown for text in (board.heading, *map(self._line, board.items))]

    def _line(self, item: BoardItem) -> str:
        """Render an item, such as `- fact: The kiln is broken [ben, 2026-11-27]`."""
        date = (item.said_at or item.last_seen_at).astimezone(zone(self.time_zone)).date().isoformat()
        return f"{item_text(item)} [{', '.join(filter(None, (author(item), date)))}]"


def _shared_board(row: Mapping[str, Any], perspective: Perspective | None) -> SharedBoard:
    items = [board_item(each) for each in row["items"] or ()]
    items = sorted(items, key=item_weight) if perspective is None else ranked(items, perspective)
    return SharedBoard(row["kind"], row["id"], row["name"], row["is_refused"], tuple(items))


_TITLE: Final = "Shared:"
_FRAME: Final = fence.fenced([fence.element("shared", "")])
