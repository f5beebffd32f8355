"""The kinds of items on a board, in one table that holds everything that differs between kinds.

It is read by the schema of a summarizer's answer, the lists of a board, its card, the prompt, the tools, the command
line, the inspector and the SQL functions. A new kind also needs rules in `language.extractive`, which selects quotes
without a model, and its name and states in the checks of `memory.conversation_board_items` in `sql/tables`.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_supabase_memory.operations.boards.board import BoardItem

BoardItemKind: TypeAlias = Literal["fact", "entity", "topic", "action", "question"]
"""The kind of an item."""

ContextType: TypeAlias = Literal["action_items", "questions", "facts", "entities"]
"""What the tool `recall_context` can return."""


@dataclass(frozen=True, kw_only=True)
class BoardKind:
    """A kind of items.

    Attributes:
        kind: Its name.
        plural: The name of its list, in a summarizer's answer and on a board.
        heading: The heading above its items, for people.
        label: The label of an item in a prompt.
        description: How the list is described to the summarizer.
        states: The states of an item; a new item has the first. If there are more, an item is open at first, and
            the others close it.
        is_new_in_any_state: Whether the summarizer may also create an item in a closing state.
        types: The subtypes of an item; the last if the summarizer names none. Empty if the kind has no subtypes.
        is_name: Whether an item is a name and not a sentence. Sentences about other things also contain a name, so
            deleting such an item cuts nothing from the summary; a card shows it as a short chip.
        is_replaceable: Whether a new item may replace one that no longer holds.
        is_rated: Whether an item's importance is computed from its words; the prompt lists important items first.
        context_type: The name by which the tool `recall_context` returns the items; `None` if it does not.
        tag: The element in which that tool returns an item.
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
"""All kinds by name, in the order of the summarizer's schema."""

SENTENCES_FIRST: Final = tuple(sorted(BOARD_KINDS.values(), key=lambda each: each.is_name))
"""The kinds in the order for people: names come last."""

OPEN_FIRST: Final = tuple(sorted(BOARD_KINDS.values(), key=lambda each: not each.can_close))
"""The kinds in the order of a prompt: kinds that can be open come first."""

CLOSING: Final = tuple(dict.fromkeys(state for each in BOARD_KINDS.values() for state in each.states[1:]))
"""The states that close an item."""


class ItemLists:
    """The items of a board by kind: one property per kind, named by its `plural`.

    Attributes:
        items: All items.
    """

    if TYPE_CHECKING:  # `Board` defines the field; its module imports this one
        items: list[BoardItem]

    def of_kind(self, kind: BoardItemKind, *, open_only: bool = True) -> list[BoardItem]:
        """Return the items of a kind; done, answered and superseded items only with `open_only=False`."""
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
        """The topics of the conversation."""
        return self.of_kind("topic")

    @property
    def action_items(self) -> list[BoardItem]:
        """Open action items."""
        return self.of_kind("action")

    @property
    def pending_questions(self) -> list[BoardItem]:
        """Questions that are not answered yet."""
        return self.of_kind("question")
