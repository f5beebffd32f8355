"""The part of a pack that was recalled: what of it fits into its share of the budget, and is not shown already."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import tzinfo
from functools import cached_property
from typing import TYPE_CHECKING, Annotated, Final

from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.json_types import Named
from langchain_supabase_memory.language.messages.fence import escaped
from langchain_supabase_memory.language.query_hints.statement import is_question_or_request
from langchain_supabase_memory.operations.recall import render
from langchain_supabase_memory.operations.recall.query import NO_FILTERS, Filters, RecallQuery, check_questions
from langchain_supabase_memory.operations.recall.ranges import zone
from langchain_supabase_memory.operations.recall.search import NO_CAPABILITIES, RecallCapabilities
from langchain_supabase_memory.settings import DEFAULT_CHUNKS, ChunkPolicy
from langchain_supabase_memory.values import RECALL_SCOPES, Chunk, ConversationKey, RecallScope

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.token_meter import Meter, Sizes
    from langchain_supabase_memory.settings import ContextBudget

_BEYOND: Final = 2_000
"""So many characters more are asked for than a pack has."""

_MOST: Final = 12_000
"""The characters of a pack for which most is asked: of a turn's own question no pack shows more than 8,400."""

WORTH_OF_PAST: Final = 0.2
"""A passage that answers a question about the past has at least this share of the best one's score."""


@dataclass(frozen=True)
class RecallRequest:
    """What a pack recalls.

    Attributes:
        query: The question, mostly the user's message; or several.
        scope: Where to look.
        filters: What narrows the question down; its characters are the budget's share by default.
        capabilities: What there is beside the database.
        chunking: How what is not indexed yet becomes chunks.
        strict: Whether it is an error if what is stored was embedded by another model; else words alone find.
    """

    query: str | Sequence[str] = field(repr=False)
    scope: RecallScope = "conversation"
    filters: Filters = NO_FILTERS
    capabilities: RecallCapabilities = NO_CAPABILITIES
    chunking: ChunkPolicy = DEFAULT_CHUNKS
    strict: bool = True

    def __post_init__(self) -> None:
        choice("scope", self.scope, RECALL_SCOPES, error=InvalidInputError)
        check_questions(self.query)

    def questions(self, budget: ContextBudget) -> list[RecallQuery]:
        """The questions, for the share that a budget has for what is recalled."""
        if self.filters.characters is not None:
            return check_questions(self.query, self.filters)
        # What the other parts leave over is filled with it, too; short ones fill what long ones do not. Who asks
        # nothing is told a line or two of what is not shown anyway.
        is_asked = self.strict or budget.is_small or any(map(is_question_or_request, self._texts))
        most = budget.about_characters if self.strict else min(budget.about_characters, _MOST)
        characters = most + _BEYOND if is_asked else 2 * _BEYOND
        # A reranker has scores of its own.
        is_chosen = self.strict or budget.is_small or self.capabilities.candidates > 0
        least = None if is_chosen else WORTH_OF_PAST
        asked = check_questions(self.query, replace(self.filters, characters=characters))
        return [replace(each, min_share=least) for each in asked]

    @property
    def _texts(self) -> Sequence[str]:
        return [self.query] if isinstance(self.query, str) else self.query

    @property
    def time_zone(self) -> str | tzinfo | None:
        """The reader's time zone."""
        return self.filters.time_zone


@dataclass(frozen=True)
class RecallPart:
    """What was recalled and stands in a pack.

    Attributes:
        chunks: The best first.
        time_zone: The reader's.
        conversation: The reader's conversation: what is from another one names it.
        rendered: The day and the line of chunks that were rendered, by their ids, and the line as it stands in a
            message: a room for them is looked for several times.
    """

    chunks: Sequence[Chunk] = ()
    time_zone: Annotated[str | tzinfo | None, Named] = None
    conversation: ConversationKey | None = None
    rendered: dict[str, tuple[str, str, str]] = field(default_factory=dict, repr=False, compare=False)

    def __bool__(self) -> bool:
        """Whether there is anything."""
        return bool(self.chunks)

    @cached_property
    def message(self) -> BaseMessage | None:
        """It as a fenced message; `None` if there is nothing."""
        return render.message(render.under_days((day, shown) for day, _, shown in self._dated)) if self.chunks else None

    def lines(self) -> list[str]:
        """It in a text form."""
        below = render.under_days((day, line) for day, line, _ in self._dated)
        return [render.TITLE, *below, ""] if self.chunks else []

    @cached_property
    def _dated(self) -> list[tuple[str, str, str]]:
        """The day, the line and its form in a message of each chunk, in chronological order."""
        return [self._dated_line(each) for each in render.in_order(self.chunks)]

    def _dated_line(self, chunk: Chunk) -> tuple[str, str, str]:
        found = self.rendered.get(chunk.id)
        if found is None:
            there = zone(self.time_zone)
            line = render.line(chunk, self.conversation, there)
            found = self.rendered[chunk.id] = render.day(chunk, there), line, escaped(line)
        return found

    def fitting(self, room: Sizes, meter: Meter, first: Sequence[Chunk] = ()) -> RecallPart:
        """The best of it that fit into a room, chunk by chunk: one that is too long does not keep out the next.

        Args:
            room: The most it may weigh.
            meter: What weighs it.
            first: Chunks of it that have their place whatever is better.
        """
        left = min(
            room.as_messages - meter.estimate_line(render.FRAME), room.as_text - meter.estimate_line(render.TITLE)
        )
        days: set[str] = set()
        kept: list[int] = []
        held = {each.id for each in first}
        for place, chunk in sorted(enumerate(self.chunks), key=lambda each: each[1].id not in held):
            if left <= 0:
                break
            day, _, shown = self._dated_line(chunk)
            weight = meter.estimate_line(shown) + (0 if day in days else meter.estimate_line(day))
            if weight <= left:
                kept.append(place)
                days.add(day)
                left -= weight
        made = self._at_places(kept)
        while kept and not (forms := made.forms(meter)).fits(room):
            # It was an estimate. What is beyond it, by the share of the chunks that it is; one at least.
            share = min(room.as_messages / max(forms.as_messages, 1), room.as_text / max(forms.as_text, 1))
            del kept[min(len(kept) - 1, int(len(kept) * max(share, 0))) :]
            made = self._at_places(kept)
        return made

    def _at_places(self, places: Sequence[int]) -> RecallPart:
        """What stands at some places, the best first."""
        return replace(self, chunks=tuple(self.chunks[place] for place in sorted(places)))

    def read(self, key: ConversationKey) -> dict[int, str]:
        """The words that it has of a conversation's messages, by their numbers."""
        found: dict[int, str] = {}
        for each in self.chunks:
            if (each.thread_id, each.agent_id) == (key.thread_id, key.agent_id):
                for number in range(each.from_sequence, each.to_sequence + 1):
                    found[number] = " ".join([*found.get(number, "").split(), *each.content.split()])
        return found

    def without_shown(self, shown_sequences: Collection[int], key: ConversationKey) -> RecallPart:
        """It without what a conversation shows anyway."""
        here = (key.thread_id, key.agent_id)
        kept = [
            each
            for each in self.chunks
            if (each.thread_id, each.agent_id) != here
            # What is shown once was said more often, before what is shown.
            or (each.repeats is not None and each.repeats.sequence not in {None, *shown_sequences})
            or not all(number in shown_sequences for number in range(each.from_sequence, each.to_sequence + 1))
        ]
        return replace(self, chunks=kept)

    def forms(self, meter: Meter) -> Sizes:
        """What it weighs in each of its forms."""
        return meter.sizes(self.message, self.lines())

    def weight(self, meter: Meter) -> int:
        """What it weighs by itself against the budget."""
        return self.forms(meter).heavier
