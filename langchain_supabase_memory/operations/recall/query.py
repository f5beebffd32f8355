"""What is asked, as the SQL function takes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.language.chunks.kinds import KINDS
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.arguments import moment
from langchain_supabase_memory.operations.recall.ranges import TimeRange, bounds, zone, zone_name
from langchain_supabase_memory.settings import DEFAULT_WEIGHTS, RecallWeights

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_supabase_memory.language.chunks.kinds import Kind

Fusion = Literal["score", "rrf"]
"""How the rankings by words and by meaning become one: by their scores, or by reciprocal ranks."""

LIMIT: Final = 10
MOST: Final = 1000
EXACT_BELOW: Final = 2000
LONGEST: Final = 10_000


@dataclass(frozen=True)
class Filters:
    """What narrows a question down, and how what fits is ranked.

    Attributes:
        limit: The most chunks; 10 if neither this nor `characters` is given, and never more than 1,000.
        characters: The most characters of what is returned.
        time_range: Only what was said then.
        time_zone: That of the person who asks, by its name or itself; the memory's by default, else UTC.
        types: Only chunks of these types.
        min_importance: Only chunks that matter at least so much, 0 to 1.
        min_similarity: Only chunks whose cosine with the question is at least so much; where there are no vectors,
            whose words fit so much in relation to the best.
        neighbors: How many units before and after each chunk come with it.
        episode: Whether the whole episode of talk of each chunk comes with it.
        fusion: How words and meaning become one ranking.
        weights: What each part of the score counts.
        exact_below: Scopes of more chunks than this are not compared one by one.

    Raises:
        InvalidInputError: Something is none of its choices.
    """

    limit: int | None = None
    characters: int | None = None
    time_range: TimeRange = "all"
    time_zone: str | tzinfo | None = None
    types: Collection[Kind] | None = None
    min_importance: float | None = None
    min_similarity: float | None = None
    neighbors: int = 0
    episode: bool = False
    fusion: Fusion = "score"
    weights: RecallWeights = DEFAULT_WEIGHTS
    exact_below: int = EXACT_BELOW

    def __post_init__(self) -> None:
        numbers = (("limit", 1, MOST), ("characters", 1, 10**9), ("neighbors", 0, 20), ("exact_below", 0, 10**9))
        for each, least, most in numbers:
            number = getattr(self, each)
            if number is not None and (
                isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most
            ):
                raise InvalidInputError(f"{each} must be a whole number from {least} to {most:,}.", hint="Pass 10.")
        for each, least in (("min_importance", 0), ("min_similarity", -1)):
            number = getattr(self, each)
            if number is not None and (not isinstance(number, (int, float)) or not least <= number <= 1):
                raise InvalidInputError(f"{each} must be a number from {least} to 1.", hint=f"Pass {each}=0.5.")
        if self.types is not None and (isinstance(self.types, str) or not set(self.types) <= set(KINDS)):
            raise InvalidInputError("types has something that is no type.", hint=f"Types are {', '.join(KINDS)}.")
        if self.fusion not in ("score", "rrf"):
            raise InvalidInputError("fusion is none of the choices.", hint='Pass "score" or "rrf".')
        bounds(self.time_range, datetime.now(zone(self.time_zone)))

    def in_zone(self, time_zone: str | tzinfo | None) -> Filters:
        """They in a time zone, unless they name one."""
        return self if time_zone is None or self.time_zone is not None else replace(self, time_zone=time_zone)


NO_FILTERS: Final = Filters()

MOST_QUESTIONS: Final = 8
"""The most questions of one recall."""


def check_questions(query: str | Sequence[str], filters: Filters = NO_FILTERS) -> list[RecallQuery]:
    """The questions of one recall: one text, or several of which each is served.

    Args:
        query: The question, or up to 8; of several, blank ones and repeats count for nothing.
        filters: What narrows each down.

    Raises:
        InvalidInputError: Something is no text, there is none, or there are too many.
    """
    if isinstance(query, str) or not isinstance(query, (list, tuple)):
        return [RecallQuery(query, filters)]  # type: ignore[arg-type]
    if not 1 <= len(query) <= MOST_QUESTIONS:
        raise InvalidInputError(
            f"A recall has 1 to {MOST_QUESTIONS} questions, not {len(query)}.",
            hint='Pass fewer at once; the one question "" lists what the filters leave.',
        )
    asked = [RecallQuery(each, filters) for each in query]
    distinct = {each.text_sent.strip().casefold(): each for each in reversed(asked) if each.text_sent.strip()}
    return list(reversed(distinct.values())) or asked[:1]


@dataclass(frozen=True)
class RecallQuery:
    """A question to what was said.

    Attributes:
        text: The question, in anybody's words; blank lists what the filters leave.
        filters: What narrows it down.

    Raises:
        InvalidInputError: It is no text.
    """

    text: str = field(repr=False)
    filters: Filters = NO_FILTERS

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            raise InvalidInputError(
                f"A question must be a text, not {type(self.text).__name__}.", hint="Pass the user's words."
            )

    @property
    def text_sent(self) -> str:
        """The question as it can be sent; what is longer than any question is cut."""
        return clean(self.text[:LONGEST])

    def find_hints(self) -> query_hints.QueryHints:
        """What the question names, by rules."""
        return query_hints.find_hints(self.text_sent, datetime.now(zone(self.filters.time_zone)))

    def variants(self, hints: query_hints.QueryHints) -> list[tuple[Sequence[str], str]]:
        """The question as it is, and without words that may be the names of those who speak.

        Their names say little about what is meant, and much about who is spoken to. Which of them speak is known to the
        database alone, so it is given a vector of each.
        """
        made: dict[str, Sequence[str]] = {self.text_sent: ()}
        for names in (*([name] for name in hints.names), hints.names):
            made.setdefault(query_hints.without(self.text_sent, names), tuple(names))
        return [(names, text) for text, names in islice(made.items(), 5)]

    def document(
        self, hints: query_hints.QueryHints, vectors: Sequence[tuple[Sequence[str], Sequence[float]]], model: str | None
    ) -> dict[str, Any]:
        """What `memory_private.recall` takes.

        Args:
            hints: The question's cues.
            vectors: The names that were left out, and the vector; empty without an embedder.
            model: The embedder's name.
        """
        here = zone(self.filters.time_zone)
        now = datetime.now(here)
        since, until = bounds(self.filters.time_range, now)
        return {
            "query": self.text_sent,
            "vectors": [{"names": list(names), "vector": vector} for names, vector in vectors],
            "model": model,
            "names": list(hints.names),
            "dates": [asdict(date) for date in hints.dates],
            "wants": sorted(hints.expects),
            "zone": zone_name(now),
            "since": moment("since", since),
            "until": moment("until", until),
            "types": None if self.filters.types is None else list(self.filters.types),
            "min_importance": self.filters.min_importance,
            "min_similarity": self.filters.min_similarity,
            "limit": LIMIT if self.filters.limit is None and self.filters.characters is None else self.filters.limit,
            "characters": self.filters.characters,
            "neighbors": self.filters.neighbors,
            "whole": self.filters.episode,
            "fusion": self.filters.fusion,
            "weights": asdict(self.filters.weights),
            "exact_below": self.filters.exact_below,
        }
