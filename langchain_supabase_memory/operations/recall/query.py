"""A recall query, as the SQL function takes it."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from datetime import datetime, tzinfo
from itertools import islice
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.checks import boolean, choice, known_names, require_type, wrong_type
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.language.chunks.kinds import KINDS
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.language.query_hints.statement import is_question_or_request
from langchain_supabase_memory.operations.arguments import moment
from langchain_supabase_memory.operations.recall.ranges import TimeRange, bounds, zone, zone_name
from langchain_supabase_memory.settings import DEFAULT_WEIGHTS, RecallWeights

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from langchain_supabase_memory.language.chunks.kinds import Kind

Fusion = Literal["score", "rrf"]
"""How keyword and vector rankings are fused: by score, or by reciprocal rank fusion."""

LIMIT: Final = 10
MAX_LIMIT: Final = 1000
EXACT_BELOW: Final = 2000
LONGEST: Final = 10_000


@dataclass(frozen=True)
class Filters:
    """The filters and ranking options of a question.

    Attributes:
        limit: The maximum number of chunks; 10 if neither this nor `characters` is given, and never more than
            1,000.
        characters: The maximum number of characters returned.
        time_range: Only chunks of messages in this range.
        time_zone: The asking person's time zone, as a name or a `tzinfo`; the memory's by default, else UTC.
        types: Only chunks of these types.
        min_importance: Only chunks with at least this importance, 0 to 1.
        min_similarity: Only chunks with at least this cosine similarity to the question; without vectors, with at
            least this keyword score relative to the best one.
        neighbors: How many units before and after each chunk to return with it.
        episode: Whether to return the whole episode of each chunk.
        fusion: How keyword and vector rankings are fused.
        weights: The weight of each part of the score.
        exact_below: In scopes with more chunks than this, not every chunk is compared.

    Raises:
        InvalidInputError: An attribute is not one of its choices.
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
        numbers = (("limit", 1, MAX_LIMIT), ("characters", 1, 10**9), ("neighbors", 0, 20), ("exact_below", 0, 10**9))
        for each, least, most in numbers:
            number = getattr(self, each)
            if number is not None and (
                isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most
            ):
                raise InvalidInputError(f"{each} must be a whole number from {least} to {most:,}.", hint="Pass 10.")
        for each, least in (("min_importance", 0), ("min_similarity", -1)):
            number = getattr(self, each)
            if number is not None and (
                isinstance(number, bool) or not isinstance(number, (int, float)) or not least <= number <= 1
            ):
                raise InvalidInputError(f"{each} must be a number from {least} to 1.", hint=f"Pass {each}=0.5.")
        if self.types is not None:
            known_names("types", self.types, KINDS)
        boolean("episode", self.episode)
        require_type("weights", self.weights, RecallWeights, "weights=RecallWeights(words=1.0)")
        choice("fusion", self.fusion, ("score", "rrf"), error=InvalidInputError)
        bounds(self.time_range, datetime.now(zone(self.time_zone)))

    def in_zone(self, time_zone: str | tzinfo | None) -> Filters:
        """Return the filters in a time zone, unless they already have one."""
        return self if time_zone is None or self.time_zone is not None else replace(self, time_zone=time_zone)


NO_FILTERS: Final = Filters()

MAX_QUESTIONS: Final = 8
"""The maximum number of questions of one recall."""


def check_questions(query: str | Sequence[str], filters: Filters = NO_FILTERS) -> list[RecallQuery]:
    """Check the questions of one recall: one text, or several that all get results.

    Args:
        query: The question, or up to 8; of several, blank ones and duplicates are ignored.
        filters: The filters of each question.

    Raises:
        InvalidInputError: A question is not a string, there is none, or there are too many.
    """
    if isinstance(query, str) or not isinstance(query, (list, tuple)):
        return [RecallQuery(query, filters)]  # type: ignore[arg-type]
    if not 1 <= len(query) <= MAX_QUESTIONS:
        raise InvalidInputError(
            f"A recall has 1 to {MAX_QUESTIONS} questions, not {len(query)}.",
            hint='Pass fewer at once; the one question "" lists what the filters leave.',
        )
    asked = [RecallQuery(each, filters) for each in query]
    distinct = {each.text_sent.strip().casefold(): each for each in reversed(asked) if each.text_sent.strip()}
    return list(reversed(distinct.values())) or asked[:1]


@dataclass(frozen=True)
class RecallQuery:
    """A question about conversations.

    Attributes:
        text: The question; a blank one lists what passes the filters.
        filters: The filters.
        min_share: Only chunks whose score is at least this share of the best one's, 0 to 1; `None` for all.

    Raises:
        InvalidInputError: The question is not a string.
    """

    text: str = field(repr=False)
    filters: Filters = NO_FILTERS
    min_share: float | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.text, str):
            hint = "Pass the user's words."
            raise wrong_type("query", "a text, or a list of texts", self.text, hint, InvalidInputError)

    @property
    def text_sent(self) -> str:
        """The question as it is sent; an overlong one is truncated."""
        return clean(self.text[:LONGEST])

    def find_hints(self) -> query_hints.QueryHints:
        """Find the names, dates and other hints in the question by rules."""
        return query_hints.find_hints(self.text_sent, datetime.now(zone(self.filters.time_zone)))

    def variants(self, hints: query_hints.QueryHints) -> list[tuple[Sequence[str], str]]:
        """Return the question as is, and without words that may be speakers' names.

        Speakers' names say little about the topic, but much about who is addressed. Only the database knows which
        of them are speakers, so it gets a vector of each variant.
        """
        made: dict[str, Sequence[str]] = {self.text_sent: ()}
        for names in (*([name] for name in hints.names), hints.names):
            made.setdefault(query_hints.without(self.text_sent, names), tuple(names))
        return [(names, text) for text, names in islice(made.items(), 5)]

    def document(
        self, hints: query_hints.QueryHints, vectors: Sequence[tuple[Sequence[str], Sequence[float]]], model: str | None
    ) -> dict[str, Any]:
        """Return the argument of `memory_private.recall`.

        Args:
            hints: The question's hints.
            vectors: The names that were removed, and the vector; empty without an embedder.
            model: The embedder's name.
        """
        here = zone(self.filters.time_zone)
        now = datetime.now(here)
        since, until = bounds(self.filters.time_range, now)
        return {
            "query": self.text_sent,
            "is_question": is_question_or_request(self.text_sent),
            "vectors": [{"names": list(names), "vector": vector} for names, vector in vectors],
            "model": model,
            "names": list(hints.names),
            "dates": [_date_document(each) for each in hints.dates],
            "wants": sorted(hints.expects),
            "order": hints.order,
            "zone": zone_name(now),
            "since": moment("since", since),
            "until": moment("until", until),
            "types": None if self.filters.types is None else list(self.filters.types),
            "min_importance": self.filters.min_importance,
            "min_similarity": self.filters.min_similarity,
            "min_share": self.min_share,
            "limit": LIMIT if self.filters.limit is None and self.filters.characters is None else self.filters.limit,
            "characters": self.filters.characters,
            "neighbors": self.filters.neighbors,
            "whole": self.filters.episode,
            "fusion": self.filters.fusion,
            "weights": asdict(self._weights(hints)),
            "exact_below": self.filters.exact_below,
        }

    def _weights(self, hints: query_hints.QueryHints) -> RecallWeights:
        """Return the weights. Replies lose nothing where the question asks for them."""
        weights = self.filters.weights
        return replace(weights, reply=max(0.0, weights.reply)) if hints.asks_reply else weights


def _date_document(named: query_hints.NamedDate) -> dict[str, Any]:
    """Return a date as the database takes it, with the ends of a span in ISO form."""
    ends = {name: day and day.isoformat() for name, day in (("first", named.first), ("last", named.last))}
    return {**asdict(named), **ends}
