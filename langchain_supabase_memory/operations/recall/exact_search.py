"""The flows of exact search: find messages that contain given texts exactly, one page per call."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from langchain_supabase_memory.checks import boolean, choice
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.arguments import moment, retention_argument, scope_ids
from langchain_supabase_memory.values import FoundMessage, FoundPage

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from datetime import datetime

    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import Scope, StoredMessage

Order: TypeAlias = Literal["newest", "oldest"]
"""The order of results: from the newest or the oldest message on."""

TEXTS: Final = 10
"""The maximum number of texts of one search."""

LONGEST: Final = 1_000
"""The maximum number of characters of one text."""

LIMIT: Final = 20
MAX_LIMIT: Final = 100
"""The maximum number of messages that one call returns."""

AROUND: Final = 10
"""The maximum number of messages returned before and after each match."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactQuery:
    """An exact search.

    Attributes:
        texts: One text, or several that a message must all contain; 1 to 10 texts of 1 to 1,000 characters.
        order: From the `newest` or the `oldest` message on.
        match_case: Whether the search is case-sensitive.
        since: Only messages from this time on, with a time zone.
        until: Only messages before this time, with a time zone.
        around: How many messages before and after each match to return, 0 to 10.
        limit: The maximum number of messages that one call returns, 1 to 100.

    Raises:
        InvalidInputError: An attribute is not one of its choices.
    """

    texts: str | Sequence[str] = dataclasses.field(repr=False)
    order: Order = "newest"
    match_case: bool = False
    since: datetime | None = None
    until: datetime | None = None
    around: int = 0
    limit: int = LIMIT

    def __post_init__(self) -> None:
        _check_texts(self.texts)
        boolean("match_case", self.match_case)
        choice("order", self.order, get_args(Order), error=InvalidInputError)
        for name, least, most in (("around", 0, AROUND), ("limit", 1, MAX_LIMIT)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
                raise InvalidInputError(
                    f"{name} must be a whole number from {least} to {most}.", hint=f"Pass {name}={least or LIMIT}."
                )
        moment("since", self.since)
        moment("until", self.until)

    def arguments(self) -> dict[str, Any]:
        """Return the search as the arguments of the SQL function."""
        return {
            "p_texts": [clean(text) for text in _as_list(self.texts)],
            "p_order": self.order,
            "p_case": self.match_case,
            "p_since": moment("since", self.since),
            "p_until": moment("until", self.until),
            "p_around": self.around,
            "p_limit": self.limit,
        }


def find(
    scope: Scope,
    texts: str | Sequence[str],
    *,
    order: Order = "newest",
    match_case: bool = False,
    since: datetime | None = None,
    until: datetime | None = None,
    around: int = 0,
    limit: int = LIMIT,
    after: str | None = None,
    retention: Retention | None = None,
) -> Flow[FoundPage]:
    """Find the messages that contain a phrase, a number, a file name or an id exactly, in one round trip.

    It searches the text of messages, and the names and arguments of their tool calls, but not what the memory
    itself returned to a tool. One call scans at most 2,000 messages; in a search over several conversations, each
    conversation counts as ten. Conversations are searched in the order of their creation, from the newest or the
    oldest on. Nothing needs to be indexed.

    Args:
        scope: The conversations to search.
        texts: The text to find, 1 to 1,000 characters; or up to ten texts that a message must all contain.
        order: From the `newest` message on, or from the `oldest`.
        match_case: Whether the search is case-sensitive. If not, ß equals ss, and İ equals i.
        since: Only messages from this time on, with a time zone.
        until: Only messages before this time, with a time zone.
        around: How many messages before and after each match to return, up to 10.
        limit: The maximum number of messages that this call returns, 1 to 100.
        after: The `after` of a page, to get the next page.
        retention: The retention to apply; by default all messages are retained.

    Returns:
        The messages in the requested order, and where to continue: `page.after` is `None` once everything was
        searched.

    Raises:
        InvalidInputError: A text is blank or too long, a time is naive, or an argument is not one of its choices.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    query = ExactQuery(
        texts=texts, order=order, match_case=match_case, since=since, until=until, around=around, limit=limit
    )
    return (yield from find_page(scope, query, after=after, retention=retention))


def find_page(
    scope: Scope, query: ExactQuery, *, after: str | None = None, retention: Retention | None = None
) -> Flow[FoundPage]:
    """Find the messages that match, in one round trip that scans at most 2,000 messages.

    Args:
        scope: The conversations to search.
        query: The search.
        after: The `after` of a page; `None` starts at the beginning.
        retention: Messages beyond this retention are left out.

    Raises:
        InvalidInputError: `after` is not a string.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if after is not None and not isinstance(after, str):
        raise InvalidInputError(
            f"after must be a text, not {type(after).__name__}.", hint="Pass page.after as it is, and no page without."
        )
    beside = {"p_after": None if after is None else clean(after), "p_retention": retention_argument(retention)}
    answer = yield from call("memory_find", {**query.arguments(), **scope_ids(scope), **beside})
    return FoundPage([_parse_message(row) for row in answer["found"]], read=answer["read"], after=answer["after"])


def find_all(
    scope: Scope,
    query: ExactQuery,
    *,
    limit: int,
    calls: int | None = None,
    after: str | None = None,
    retention: Retention | None = None,
    keep: Callable[[FoundMessage], object] = bool,
) -> Flow[FoundPage]:
    """Call `find_page` until enough messages are found or everything was searched.

    Args:
        scope: The conversations to search.
        query: The search; its limit is ignored.
        limit: The maximum number of messages.
        calls: The maximum number of calls, after which `after` says where to continue; `None` means no bound.
        after: Where to start.
        retention: The retention to apply.
        keep: Decides whether a message counts; the others are left out.
    """
    page = FoundPage([], after=after)
    for number in count(1):
        asked = dataclasses.replace(query, limit=min(MAX_LIMIT, limit - len(page)))
        following = yield from find_page(scope, asked, after=page.after, retention=retention)
        page = FoundPage([*page, *filter(keep, following)], page.read + following.read, following.after)
        if page.after is None or len(page) >= limit or number == calls:
            break
    return page


def _check_texts(texts: object) -> None:
    listed = _as_list(texts)
    hint = 'Pass "E-47", or ["kiln", "E-47"] for messages that hold both.'
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, str) for each in listed):
        raise InvalidInputError("texts must be a string or a list of strings.", hint=hint)
    if not 1 <= len(listed) <= TEXTS:
        raise InvalidInputError(f"There must be 1 to {TEXTS} texts to look for, not {len(listed)}.", hint=hint)
    if any(not each.strip(" \t\r\n") for each in listed):
        raise InvalidInputError("A text to search for must not be blank.", hint=hint)
    longest = max(map(len, listed))
    if longest > LONGEST:
        raise InvalidInputError(
            f"A text to look for has at most {LONGEST:,} characters, not {longest:,}.",
            hint="Pass a part of it that is rare, or use recall for a long question.",
        )


def _as_list(texts: Any) -> Any:
    return [texts] if isinstance(texts, str) else texts


def _parse_message(row: Mapping[str, Any]) -> FoundMessage:
    return FoundMessage(
        row["thread_id"],
        row["agent_id"],
        _stored(row["message"]),
        before=[*map(_stored, row["before"])],
        after=[*map(_stored, row["after"])],
    )


def _stored(row: Mapping[str, Any]) -> StoredMessage:
    stored = codec.from_row(row)
    return dataclasses.replace(stored, unreadable=codec.unreadable_message(stored.message))


def place(text: str, texts: str | Sequence[str]) -> int:
    """Return about where a text first contains one of several: the position of a character; 0 if unknown.

    Args:
        text: The text that contains them.
        texts: The texts that were searched for.
    """
    forms = (re.escape(form) for each in _as_list(texts) for form in {each, unicodedata.normalize("NFC", each)})
    found = re.search("|".join(forms), text, re.IGNORECASE)
    return found.start() if found else 0
