"""The flows of exact search: messages that hold some texts letter by letter, a page with each call."""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from itertools import count
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

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
"""From which end of time one looks."""

READ: Final = 2_000
"""The most messages that one call looks at, where each conversation counts as ten."""

TEXTS: Final = 10
"""The most texts of one search."""

LONGEST: Final = 1_000
"""The most characters of one text."""

LIMIT: Final = 20
MOST: Final = 100
"""The most messages that one call finds."""

AROUND: Final = 10
"""The most messages that come with one, before it and after it each."""


@dataclasses.dataclass(frozen=True, kw_only=True)
class ExactQuery:
    """What is looked for, letter by letter.

    Attributes:
        texts: A text, or several that a message holds all of; 1 to 10 of 1 to 1,000 characters.
        order: From the `newest` or the `oldest` message on.
        match_case: Whether capitals matter.
        since: Only messages of this time or later, with a time zone.
        until: Only messages before this time, with a time zone.
        around: So many messages before and after each come with it, 0 to 10.
        limit: The most messages that one call finds, 1 to 100.

    Raises:
        InvalidInputError: Something is none of its choices.
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
        if self.order not in get_args(Order):
            raise InvalidInputError("There is no such order.", hint='Pass "newest" or "oldest".')
        for name, least, most in (("around", 0, AROUND), ("limit", 1, MOST)):
            number = getattr(self, name)
            if isinstance(number, bool) or not isinstance(number, int) or not least <= number <= most:
                raise InvalidInputError(
                    f"{name} must be a whole number from {least} to {most}.", hint=f"Pass {name}={least or LIMIT}."
                )
        moment("since", self.since)
        moment("until", self.until)

    def arguments(self) -> dict[str, Any]:
        """It as the SQL function takes it."""
        return {
            "p_texts": [clean(text) for text in _as_list(self.texts)],
            "p_order": self.order,
            "p_case": bool(self.match_case),
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
    """The messages that hold a phrase, a number, a file name or an id, letter by letter, in one round trip.

    It looks at the words of the messages, and at the names and arguments of what they call; not at what the memory
    itself gave a tool. One call looks at 2,000 messages at most; of several conversations, each counts as ten.
    Several come in the order in which they were begun, from the newest or the oldest on. Nothing needs to be
    indexed.

    Args:
        scope: Where to look.
        texts: What to look for, 1 to 1,000 characters; of up to ten, a message holds each.
        order: From the `newest` message on, or from the `oldest`.
        match_case: Whether capitals matter. If not, ß is ss, and İ is i.
        since: Only messages of this time or later, with a time zone.
        until: Only messages before this time, with a time zone.
        around: So many messages before and after each come with it, up to 10.
        limit: The most messages that this call finds, 1 to 100.
        after: `after` of the page before, for what follows.
        retention: What is kept; everything by default.

    Returns:
        The messages in the order that was asked for, and where to go on: `page.after` is `None` if everything was
        looked at.

    Raises:
        InvalidInputError: A text is blank or too long, a time is naive, or an argument is none of its choices.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    query = ExactQuery(
        texts=texts, order=order, match_case=match_case, since=since, until=until, around=around, limit=limit
    )
    return (yield from find_page(scope, query, after=after, retention=retention))


def find_page(
    scope: Scope, query: ExactQuery, *, after: str | None = None, retention: Retention | None = None
) -> Flow[FoundPage]:
    """The messages that hold what is wanted, in one round trip that looks at 2,000 of them at most.

    Args:
        scope: Where to look.
        query: What for.
        after: `after` of the page before; `None` begins.
        retention: What is kept; what is beyond it is left out.

    Raises:
        InvalidInputError: `after` is none.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if after is not None and not isinstance(after, str):
        raise InvalidInputError(
            f"after must be a text, not {type(after).__name__}.", hint="Pass page.after as it is, and no page without."
        )
    beside = {"p_after": None if after is None else clean(after), "p_retention": retention_argument(retention)}
    answer = yield from call("memory_find", {**query.arguments(), **scope_ids(scope), **beside})
    return FoundPage([_found_message(row) for row in answer["found"]], read=answer["read"], after=answer["after"])


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
    """The same, call after call until enough are found or everything was looked at.

    Args:
        scope: Where to look.
        query: What for; its limit is not looked at.
        limit: The most messages.
        calls: The most calls, after which `after` says where to go on; `None` for as many as it takes.
        after: Where to begin.
        retention: What is kept.
        keep: Says of each whether it counts; the others are left out.
    """
    page = FoundPage([], after=after)
    for number in count(1):
        asked = dataclasses.replace(query, limit=min(MOST, limit - len(page)))
        following = yield from find_page(scope, asked, after=page.after, retention=retention)
        page = FoundPage([*page, *filter(keep, following)], page.read + following.read, following.after)
        if page.after is None or len(page) >= limit or number == calls:
            break
    return page


def _check_texts(texts: object) -> None:
    listed = _as_list(texts)
    hint = 'Pass "E-47", or ["kiln", "E-47"] for messages that hold both.'
    if not isinstance(listed, (list, tuple)) or not all(isinstance(each, str) for each in listed):
        raise InvalidInputError("What is looked for must be a text, or a list of texts.", hint=hint)
    if not 1 <= len(listed) <= TEXTS:
        raise InvalidInputError(f"There must be 1 to {TEXTS} texts to look for, not {len(listed)}.", hint=hint)
    if any(not each.strip(" \t\r\n") for each in listed):
        raise InvalidInputError("There is nothing to look for in a blank text.", hint=hint)
    longest = max(map(len, listed))
    if longest > LONGEST:
        raise InvalidInputError(
            f"A text to look for has at most {LONGEST:,} characters, not {longest:,}.",
            hint="Pass a part of it that is rare, or use recall for a long question.",
        )


def _as_list(texts: Any) -> Any:
    return [texts] if isinstance(texts, str) else texts


def _found_message(row: Mapping[str, Any]) -> FoundMessage:
    return FoundMessage(
        row["thread_id"],
        row["agent_id"],
        _stored(row["message"]),
        before=[*map(_stored, row["before"])],
        after=[*map(_stored, row["after"])],
    )


def _stored(row: Mapping[str, Any]) -> StoredMessage:
    stored = codec.from_row(row)
    assert stored.message is not None  # the payload always comes
    return dataclasses.replace(stored, unreadable=codec.unreadable_message(stored.message))


def place(text: str, texts: str | Sequence[str]) -> int:
    """About where a text holds one of several first: the place of a character; 0 if that cannot be seen.

    Args:
        text: The text that holds them.
        texts: What was looked for.
    """
    forms = (re.escape(form) for each in _as_list(texts) for form in {each, unicodedata.normalize("NFC", each)})
    found = re.search("|".join(forms), text, re.IGNORECASE)
    return found.start() if found else 0
