"""A perspective: the order in which an agent is shown the items of a board. No model is asked, and no item changes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol, TypeVar

from langchain_supabase_memory.checks import choice, number, wrong_type
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language import shared_words
from langchain_supabase_memory.operations.boards.kinds import BOARD_KINDS, BoardItemKind

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime

LONGEST_BRIEF: Final = 2_000
"""The maximum number of characters of a brief."""

HIGHEST_WEIGHT: Final = 10
"""The maximum weight of a kind."""

KEPT: Final = shared_words.KEPT
"""What is read from files once; see `effects.offload`."""

EXAMPLE: Final = 'perspective=Perspective("payments, invoices"), for example'
"""What to pass, for the hint of an error."""

_NAME_SHARE: Final = 0.5  # of the importance of what is rated: a bare name says less than a sentence


@dataclass(frozen=True)
class Perspective:
    """What an agent watches: the order in which it is shown the items of a board.

    Items are found once, for all agents; a perspective only orders them, so agents differ in what they see first and
    never in what is so. Pinned items stay first. The others are ordered by the weight of their kind times their
    importance times (1 + how well their words fit the brief).

    Attributes:
        brief: What the agent watches, in the words of its field, up to 2,000 characters: "payments, invoices, taxes".
            Words match whatever their inflection, and in the language of the items; nothing is translated.
        kinds: The weight of each kind of items, from 0 to 10; 1 by default. A kind with weight 0 is not shown, except
            for items that a person or the application wrote, changed or pinned.

    Raises:
        ConfigurationError: There is neither a brief nor a weight, the brief is too long, a kind does not exist, or a
            weight is out of bounds.

    Example:
        ```python
        bookkeeper = Perspective("payments, invoices, receipts, taxes", kinds={"action": 1.5, "topic": 0})
        middleware = SupabaseMemoryMiddleware(memory, perspective=bookkeeper)
        ```
    """

    brief: str = ""
    kinds: Mapping[BoardItemKind, float] = field(default_factory=dict, hash=False)

    def __post_init__(self) -> None:
        hint = 'Pass Perspective("payments, invoices", kinds={"action": 1.5, "topic": 0}), for example.'
        if not isinstance(self.brief, str):
            raise wrong_type("brief", "a text", self.brief, hint)
        if not isinstance(self.kinds, Mapping):
            raise wrong_type("kinds", "a mapping from kinds to weights", self.kinds, hint)
        if not self.brief.strip() and not self.kinds:
            raise ConfigurationError("A perspective needs a brief or weights of kinds.", hint=hint)
        if len(self.brief) > LONGEST_BRIEF:
            raise ConfigurationError(
                f"The brief has more than {LONGEST_BRIEF:,} characters.",
                hint="Name what the agent watches in a few words.",
            )
        for kind, weight in self.kinds.items():
            choice("kinds", kind, BOARD_KINDS)
            number(f"kinds[{kind!r}]", weight, above=False, optional=False, example=1.5)
            if weight > HIGHEST_WEIGHT:
                raise ConfigurationError(f"kinds[{kind!r}] is more than {HIGHEST_WEIGHT}.", hint=hint)
        object.__setattr__(self, "kinds", dict(self.kinds))

    def weight(self, kind: BoardItemKind) -> float:
        """Return the weight of a kind."""
        return self.kinds.get(kind, 1.0)


class Ranked(Protocol):
    """What is known of an item that a perspective orders; a `BoardItem` is one."""

    @property
    def kind(self) -> BoardItemKind:
        """Its kind."""

    @property
    def text(self) -> str:
        """Its text."""

    @property
    def importance(self) -> float:
        """Its importance, from 0 to 1."""

    @property
    def pinned(self) -> bool:
        """Whether a person pinned it."""

    @property
    def edited_at(self) -> datetime | None:
        """When a person or the application wrote or changed it."""

    @property
    def last_seen_at(self) -> datetime:
        """When it was last mentioned."""


T = TypeVar("T", bound=Ranked)


def ordering_effort(texts: Iterable[str]) -> int:
    """Return how many characters ordering is worth, as `effects.offload` counts: a twentieth of the items' own."""
    return sum(map(len, texts)) // 20


def is_persons(item: Ranked) -> bool:
    """Return whether a person or the application wrote, changed or pinned an item."""
    return item.pinned or item.edited_at is not None


def ranked(items: Sequence[T], perspective: Perspective) -> list[T]:
    """Order items by a perspective: pinned ones, then by their score, the most recently mentioned of equals first.

    Args:
        items: The items that hold now. They are the corpus: words that most of them have count little.
        perspective: The perspective.

    Returns:
        The items, without kinds of weight 0 that nobody wrote, changed or pinned.
    """
    scored = zip(items, scores(items, perspective), strict=True)
    shown = [(item, score) for item, score in scored if perspective.weight(item.kind) or is_persons(item)]
    shown.sort(key=lambda each: (not each[0].pinned, -each[1], -each[0].last_seen_at.timestamp()))
    return [item for item, _ in shown]


def scores(items: Sequence[Ranked], perspective: Perspective) -> list[float]:
    """Return the score of each item: weight of its kind times importance times (1 + BM25 of the brief against it).

    Args:
        items: The items, which are the corpus.
        perspective: The perspective.
    """
    fits = shared_words.shared_word_scores(perspective.brief, [item.text for item in items])
    return [
        perspective.weight(item.kind) * _importance(item) * (1 + fit) for item, fit in zip(items, fits, strict=True)
    ]


def _importance(item: Ranked) -> float:
    """Return an item's importance. Only facts are rated; a task or a question has 0.7, a name half of that."""
    return item.importance * (_NAME_SHARE if BOARD_KINDS[item.kind].is_name else 1)
