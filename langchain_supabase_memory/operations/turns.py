"""The flows over turns: list the newest, read one by its number, and render turns as text for a prompt."""

from __future__ import annotations

import string
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.effects import Flow, call, offload
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language import references
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids, moment, retention_argument
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.values import Reference, Turn

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.language.references import Match
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey

TEMPLATE: Final = "{speaker}: {user_query}\nAssistant: {ai_response}"
"""The default template of a turn; a template may use `number`, `created_at`, `speaker` and the two texts."""

PAGE: Final = 1000
"""The maximum number of turns that one call returns."""

_NAMES: Final = {"number", "speaker", "user_query", "ai_response", "created_at"}


LONGEST: Final = 1_000_000
"""The maximum number of characters of a query or an answer."""


def messages_of(query: str, response: str) -> list[BaseMessage]:
    """Return the messages of a complete turn, as `Conversation.add_turn` takes it."""
    for name, text in (("query", query), ("response", response)):
        if not isinstance(text, str):
            raise InvalidInputError(f"{name} must be a text, not {type(text).__name__}.", hint=f"Pass {name}=str(...).")
        if not text.strip() or len(text) > LONGEST:
            raise InvalidInputError(
                f"{name} must have 1 to {LONGEST:,} characters that are not blank; it has {len(text):,}.",
                hint="Use append for a turn that is not complete yet.",
            )
    return [HumanMessage(query), AIMessage(response)]


def list_turns(
    key: ConversationKey,
    *,
    last: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    before: int | None = None,
    retention: Retention | None = None,
) -> Flow[list[Turn]]:
    """List the complete turns, oldest first: the user's query and the final answer, without tool calls in between.

    Args:
        key: The conversation.
        last: Only this many of the newest turns.
        since: Only turns asked at or after this time, with a time zone.
        until: Only turns asked before this time, with a time zone.
        before: Only turns that begin before the message with this number. To get the previous page, pass the
            `from_sequence` of the page's first turn.
        retention: Turns beyond this retention are not returned; by default the memory's retention.

    Raises:
        InvalidInputError: `last` or `before` is negative, or a time is naive.
    """
    check_limit("last", last)
    check_limit("before", before)
    found: list[Turn] = []
    while last is None or len(found) < last:
        wanted = PAGE if last is None else min(PAGE, last - len(found))
        page = yield from call(
            "memory_turns",
            {
                **conversation_ids(key),
                "p_last": wanted,
                "p_before": found[0].from_sequence if found else before,
                "p_since": moment("since", since),
                "p_until": moment("until", until),
                "p_retention": retention_argument(retention),
            },
        )
        found = [*map(turn_of, page["turns"]), *found]
        if not page["more"] or not page["turns"]:
            break
    return found


def read_turn(key: ConversationKey, number: int, *, retention: Retention | None = None) -> Flow[Turn | None]:
    """Return one complete turn by its number; a negative number counts from the end.

    Args:
        key: The conversation.
        number: 1 is the oldest retained turn; -1 is the newest.
        retention: The retention to apply; by default all messages are retained.

    Returns:
        The turn; `None` if there is no turn with this number.

    Raises:
        InvalidInputError: The number is 0 or not a whole number.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number == 0:
        raise InvalidInputError(
            "number must be a whole number other than 0.", hint="Pass 1 for the oldest turn, -1 for the newest."
        )
    place: dict[str, Any] = {"p_number": number} if number > 0 else {"p_last": 1, "p_skip": -number - 1}
    page = yield from call(
        "memory_turns", {**conversation_ids(key), **place, "p_retention": retention_argument(retention)}
    )
    return next(map(turn_of, page["turns"]), None)


def resolve(key: ConversationKey, text: str, *, retention: Retention | None = None) -> Flow[Reference | None]:
    """Return the turn that a user's words refer to, such as "the second one" or "yung una".

    Deterministic, without a model. The database is only called if the text contains a reference.

    Args:
        key: The conversation.
        text: The user's message; it is not part of a turn yet.
        retention: The retention to apply; by default all messages are retained.

    Returns:
        The turn, the words and the rule; `None` if the words refer to no turn, or to one that does not exist. Only
        retained turns are counted: when the oldest is removed, "the first one" is the one after it.

    Raises:
        InvalidInputError: `text` is not a string.
    """
    match = yield from find_references(text)
    return None if match is None else (yield from referenced_turn(key, match, retention=retention))


def find_references(text: str) -> Flow[Match | None]:
    """Find the words that refer to a turn; `None` if there are none. Makes no database call."""
    characters = len(text) if isinstance(text, str) else 0  # `find_reference` rejects other types
    return (yield from offload(partial(references.find_reference, text), characters, warm_caches=references.KEPT))


def referenced_turn(
    key: ConversationKey, match: Match, *, retention: Retention | None = None
) -> Flow[Reference | None]:
    """Return the turn that the words refer to; `None` if there is no such turn."""
    number = match.ordinal if match.ordinal is not None else -(match.from_end or 1)
    found = yield from read_turn(key, number, retention=retention)
    return None if found is None else Reference(found, match.span, match.rule)


def turns_as_text(
    key: ConversationKey,
    *,
    template: str = TEMPLATE,
    separator: str = "\n\n",
    last: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    retention: Retention | None = None,
) -> Flow[str]:
    """Render the complete turns as text for a prompt, with each query and answer in a template.

    Args:
        key: The conversation.
        template: The format string of a turn, over `number`, `speaker`, `user_query`, `ai_response`, `created_at`.
            The speaker is `User`, or in a space what its members call who asked.
        separator: The text between two turns.
        last: Only this many of the newest turns.
        since: Only turns asked at or after this time, with a time zone.
        until: Only turns asked before this time, with a time zone.
        retention: Turns beyond this retention are left out; by default the memory's retention.

    Raises:
        InvalidInputError: `last` is negative, a time is naive, or the template uses an unknown name.
    """
    turns = yield from list_turns(key, last=last, since=since, until=until, retention=retention)
    return turns_text(turns, template, separator)


def turns_text(turns: Sequence[Turn], template: str = TEMPLATE, separator: str = "\n\n") -> str:
    """Render turns as text for a prompt, as `Conversation.turns_as_text`."""
    if not isinstance(separator, str):
        raise wrong_type("separator", "a text", separator, 'Pass separator="\\n".', InvalidInputError)
    try:
        parsed = list(string.Formatter().parse(template))
    except (TypeError, ValueError):
        raise _no_template() from None
    unknown = sorted({name for _, name, _, _ in parsed if name is not None} - _NAMES)
    if unknown:
        raise InvalidInputError(
            f"A turn has no {unknown[0]!r}.",
            hint="Templates may use number, speaker, user_query, ai_response and created_at.",
        )
    if any("{" in (form or "") for _, _, form, _ in parsed):
        raise _no_template()  # a nested field could reach any attribute
    try:
        return separator.join(template.format(**vars(each), speaker=speaker(each)) for each in turns)
    except (LookupError, TypeError, ValueError):
        raise _no_template() from None


def _no_template() -> InvalidInputError:
    return InvalidInputError("The template is not a valid format string.", hint=f"Pass {TEMPLATE!r}, for example.")


def speaker(turn: Turn) -> str:
    """Return what a transcript calls who asked: `User`, and in a space their name, such as `User (Ana)`.

    The role comes first, since a name may look like `Assistant`.
    """
    return content.speaker("User", turn.author_name)


def turn_of(row: Mapping[str, Any]) -> Turn:
    """Return a turn of the SQL functions as a value."""
    images = {name: row[name] or [] for name in ("user_images", "ai_images")}
    return value_of(Turn, row, number=row["turn_number"], **images)
