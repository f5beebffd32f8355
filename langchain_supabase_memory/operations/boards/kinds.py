"""The kinds of items on a board, in one table: all that tells one kind from another.

The schema of a writer's answer, the lists of a board, its card, the prompt, the tools, the command, the inspector and
the SQL functions read it. A new kind also needs its rules in `language.extractive`, which quotes without a model, and
its name and states in the checks of `memory.conversation_board_items` in `sql/tables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.operations.boards.board import BoardItem

BoardItemKind: TypeAlias = Literal["fact", "entity", "topic", "action", "question"]
"""What an item of a board is."""

ContextType: TypeAlias = Literal["action_items", "questions", "facts", "entities"]
"""What the tool `recall_context` can be asked for."""


@dataclass(frozen=True, kw_only=True)
class BoardKind:
    """A kind of items.

    Attributes:
        kind: Its name.
        plural: The name of its list: in a writer's answer, and of a board.
        heading: What stands above its items where a person reads them.
        label: What stands before an item in a prompt.
        description: What a writer is told about the list.
        states: The states of an item; the first is that of a new one. Where there are more, an item is open at first,
            and the others close it.
        is_new_in_any_state: Whether a writer may also give a new item one of the states that close it.
        types: What an item may be more exactly; the last if its writer does not say. Empty if it has no type.
        is_name: Whether it is a name and not a sentence: sentences about other things have it, too. So nothing is cut
            from the summary when an item is deleted, and a card shows it short.
        is_replaceable: Whether a new item may take the place of one that no longer holds.
        is_rated: Whether its words tell how important an item is; the prompt has the important ones first.
        context_type: By what the tool `recall_context` is asked for them; `None` if it does not have them.
        tag: The element in which that tool gives an item.
    """

    kind: BoardItemKind
    plural: str
    heading: str
    label: str
    description: str
    states: tuple[str, ...] = ("current",)
    is_new_in_any_state: bool = False
    types: tuple[str, ...] = ()
    is_name: bool = False
    is_replaceable: bool = False
    is_rated: bool = False
    context_type: ContextType | None = None
    tag: str = ""

    @property
    def can_close(self) -> bool:
        """Whether an item is open until something closes it."""
        return len(self.states) > 1


BOARD_KINDS: Final[Mapping[BoardItemKind, BoardKind]] = MappingProxyType(
    {
        each.kind: each
        for each in (
            BoardKind(
                kind="fact",
                plural="facts",
                heading="Facts",
                label="fact",
                description="New or corrected facts that matter later.",
                is_replaceable=True,
                is_rated=True,
                context_type="facts",
                tag="fact",
            ),
            BoardKind(
                kind="entity",
                plural="entities",
                heading="People, places, organizations, dates",
                label="entity",
                description="New people, places, organizations and dates.",
                types=("person", "place", "organization", "date", "other"),
                is_name=True,
                context_type="entities",
                tag="entity",
            ),
            BoardKind(
                kind="topic",
                plural="topics",
                heading="Topics",
                label="topic",
                description="New topics, in a few words each.",
                is_name=True,
            ),
            BoardKind(
                kind="action",
                plural="action_items",
                heading="Action items",
                label="to do",
                description="New tasks and promises, or those that changed.",
                states=("open", "done", "cancelled"),
                is_new_in_any_state=True,
                is_replaceable=True,
                context_type="action_items",
                tag="to_do",
            ),
            BoardKind(
                kind="question",
                plural="pending_questions",
                heading="Pending questions",
                label="open question",
                description="New questions that nobody has answered yet.",
                states=("open", "answered", "dropped"),
                context_type="questions",
                tag="question",
            ),
        )
    }
)
"""All kinds, by name, in the order in which a writer is asked for them."""

SENTENCES_FIRST: Final = tuple(sorted(BOARD_KINDS.values(), key=lambda each: each.is_name))
"""The kinds in the order in which a person reads a board: names come last."""

OPEN_FIRST: Final = tuple(sorted(BOARD_KINDS.values(), key=lambda each: not each.can_close))
"""The kinds in the order in which a prompt has them: what can be open comes first."""

CLOSING: Final = tuple(dict.fromkeys(state for each in BOARD_KINDS.values() for state in each.states[1:]))
"""The states that close an item."""


class ItemLists:
    """The items of a board by their kinds: a property for each, named as the kind's `plural`.

    Attributes:
        items: All items.
    """

    if TYPE_CHECKING:  # the field is the board's, whose module reads this one
        items: list[BoardItem]

    def of_kind(self, kind: BoardItemKind, *, open_only: bool = True) -> list[BoardItem]:
        """The items of a kind; without those that are done, answered or superseded unless they are asked for."""
        return [item for item in self.items if item.kind == kind and (item.is_open or not open_only)]

    @property
    def facts(self) -> list[BoardItem]:
        """Important facts that hold."""
        return self.of_kind("fact")

    @property
    def entities(self) -> list[BoardItem]:
        """People, places, organizations and dates."""
        return self.of_kind("entity")

    @property
    def topics(self) -> list[BoardItem]:
        """What it is about."""
        return self.of_kind("topic")

    @property
    def action_items(self) -> list[BoardItem]:
        """What is still to be done."""
        return self.of_kind("action")

    @property
    def pending_questions(self) -> list[BoardItem]:
        """What nobody has answered yet."""
        return self.of_kind("question")
