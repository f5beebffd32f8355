"""Flows of the profile: what is known of a user, what they do with it, and what they allow to be derived."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, get_args

from langchain_supabase_memory.checks import as_uuid, boolean, choice, known_names
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.operations.arguments import check_actor, check_limit, moment
from langchain_supabase_memory.operations.boards.schema import AuthorKind
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.values import check_id

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor

ProfileKind: TypeAlias = Literal["fact", "preference", "instruction", "trait", "constraint"]
"""The kinds of items."""

KIND_HEADINGS: Final[tuple[tuple[str, tuple[ProfileKind, ...]], ...]] = (
    ("Instructions and constraints", ("instruction", "constraint")),
    ("Preferences", ("preference",)),
    ("Traits", ("trait",)),
    ("Facts", ("fact",)),
)
"""The headings under which people see items, each with its kinds."""

ProfileState: TypeAlias = Literal["held", "proposed", "superseded"]
"""The states of items: what holds, what a person is asked about, and what held before."""

ProfileBasis: TypeAlias = Literal["person", "corrected", "stated", "repeated", "inferred"]
"""Why an item holds, in the order of authority."""

Purpose: TypeAlias = Literal["profile", "topics", "signals", "tone", "analytics"]
"""What a user allows to be derived."""

LONGEST_VALUE: Final = 500
"""The maximum number of characters of an item's value."""

LONGEST_SUBJECT: Final = 200
"""The maximum number of characters of an item's subject, and of its condition."""

_PAGE: Final = 500
"""The most items of one call."""

_EXPORT_PAGE: Final = 200
_EXPORTED: Final = ("held", "proposed", "superseded", "deleted")


@dataclass(frozen=True)
class ProfileEvidence:
    """Words of the user that say what an item says.

    Attributes:
        thread_id: The conversation's thread.
        agent_id: Its agent.
        message_id: The message's id.
        sequence: Its number in the conversation.
        quote: The words, as they stand in it.
        at: When it was said.
    """

    thread_id: str
    agent_id: str
    message_id: str
    sequence: int
    quote: str = field(repr=False)
    at: datetime


@dataclass(frozen=True)
class ProfileItem:
    """What is known of a user in one matter, over the time in which it holds.

    Attributes:
        id: Names the item in calls.
        kind: What it is.
        subject: What it is about. Of one kind, subject and condition one value holds at a time.
        value: What it says of that.
        polarity: 1 if they want or like it, -1 if they do not, 0 for neither.
        condition: When it holds, such as "when debugging"; `None` means always.
        agent_id: The agent with which it holds; `None` means with all.
        state: Whether it is held, proposed or superseded. What is proposed is shown to the person and to no prompt.
        basis: Why it holds: `person` (they wrote or confirmed it), `corrected` or `stated` (they said that it lasts),
            `repeated` (they said it in two conversations); `inferred` if none of these.
        pinned: Whether a person pinned it.
        author: Who wrote it first: a person, a model's name or a rule's.
        author_kind: What that is.
        first_seen_at: When it was first said.
        last_seen_at: When it was last said.
        held_at: Since when it holds; `None` if it never did.
        ended_at: Until when; `None` if it is not over.
        superseded_by: The id of what holds in its place.
        suggested_at: When a model or an import put it forward without words of the user; `None` if none did.
        confirmed_at: When a person wrote or confirmed it; `None` if nobody did.
        confirmed_by: Who.
        evidence: The messages that say so, at most 20, oldest first.
    """

    id: str
    kind: ProfileKind
    subject: str = field(repr=False)
    value: str = field(repr=False)
    polarity: int
    condition: str | None = field(repr=False)
    agent_id: str | None
    state: ProfileState
    basis: ProfileBasis
    pinned: bool
    author: str
    author_kind: AuthorKind
    first_seen_at: datetime
    last_seen_at: datetime
    held_at: datetime | None
    ended_at: datetime | None
    superseded_by: str | None
    suggested_at: datetime | None
    confirmed_at: datetime | None
    confirmed_by: str | None
    evidence: tuple[ProfileEvidence, ...]


@dataclass(frozen=True)
class Consent:
    """What a user said of one purpose.

    Attributes:
        purpose: The purpose.
        allowed: Whether they allow it.
        actor: Who said so.
        at: When.
    """

    purpose: Purpose
    allowed: bool
    actor: str
    at: datetime


def read(
    owner: str | None,
    *,
    at: datetime | None = None,
    agent_id: str | None = None,
    states: Sequence[ProfileState] = ("held", "proposed"),
    limit: int | None = 200,
) -> Flow[list[ProfileItem]]:
    """Read what is known of the user: pinned items, instructions and constraints, preferences, traits, facts.

    Args:
        owner: The user; `None` means the access token's subject.
        at: What held at this time, by when things were said; now by default. Then `states` do not count.
        agent_id: What holds with this agent, and with all; by default with any.
        states: Which states.
        limit: The maximum number of items; `None` means all.

    Raises:
        InvalidInputError: A time has no time zone, a state is unknown, or a space is named: it has no profile.
    """
    check_limit("limit", limit)
    listed = known_names("states", states, get_args(ProfileState))
    arguments = {"p_at": moment("at", at), "p_agent_id": agent_id, "p_states": listed}
    return (yield from _read(owner, arguments, limit))


def history(owner: str | None, item: ProfileItem | str) -> Flow[list[ProfileItem]]:
    """Read what was known of the same matter over time: what an item superseded, and what superseded it.

    Args:
        owner: The user; `None` means the access token's subject.
        item: The item, or its id.

    Returns:
        The items, those that were said first first; empty if there is no such item.
    """
    found = yield from _read(owner, {"p_item_id": _item_id(item)}, None)
    return sorted(found, key=lambda each: (each.held_at or each.first_seen_at, each.first_seen_at))


def remember(
    owner: str | None,
    text: str,
    *,
    kind: ProfileKind = "fact",
    subject: str | None = None,
    polarity: Literal[-1, 0, 1] = 0,
    condition: str | None = None,
    agent_id: str | None = None,
    actor: str | None = None,
    author_kind: Literal["person", "application", "model"] = "person",
    redactor: Redactor | None = None,
) -> Flow[str]:
    """Remember something about the user, without a conversation. It holds from now on.

    What a model remembers is proposed, and holds once a person confirms it. At most 100 such items wait.

    Args:
        owner: The user; `None` means the access token's subject.
        text: What is remembered, up to 500 characters.
        kind: What it is.
        subject: What it is about, up to 200 characters: another value of the same subject takes over. By default
            the text itself, so that nothing is superseded.
        polarity: 1 if they want or like it, -1 if they do not.
        condition: When it holds; by default always.
        agent_id: The agent with which it holds; by default all.
        actor: Who remembers it; the user by default.
        author_kind: The kind of `actor`. An application counts as much as a person; pass `model` for what a model
            decided by itself.
        redactor: Removes secrets and personal data before storage.

    Returns:
        The item's id. What is held already is not remembered twice.

    Raises:
        InvalidInputError: The text, the kind or the subject is not valid, it mentions an opted-out topic, the user
            does not allow a profile, or a model suggests what the user deleted.
        TooLargeError: The profile is full, or too many suggestions wait for the user.
    """
    choice("kind", kind, get_args(ProfileKind))
    if agent_id is not None:
        check_id("agent_id", agent_id)
    made = {
        "kind": kind,
        "value": _text("text", text, LONGEST_VALUE, redactor),
        "subject": None if subject is None else _text("subject", subject, LONGEST_SUBJECT, redactor),
        "condition": None if condition is None else _text("condition", condition, LONGEST_SUBJECT, redactor),
        "polarity": _polarity(polarity),
        "agent_id": agent_id,
    }
    return (yield from _edit(owner, "remember", actor, item=made, author_kind=author_kind))


def confirm(owner: str | None, item: ProfileItem | str, *, actor: str | None = None) -> Flow[str]:
    """Confirm an item: what was proposed holds, and what was superseded holds again, from now on.

    Args:
        owner: The user; `None` means the access token's subject.
        item: The item, or its id.
        actor: Who confirms it; the user by default.

    Returns:
        The id of the item that holds: a new one for what was superseded.

    Raises:
        NotFoundError: There is no such item.
    """
    return (yield from _edit(owner, "confirm", actor, item_id=_item_id(item)))


def correct(
    owner: str | None,
    item: ProfileItem | str,
    value: str,
    *,
    polarity: Literal[-1, 0, 1] | None = None,
    actor: str | None = None,
    redactor: Redactor | None = None,
) -> Flow[str]:
    """Correct an item: another value holds from now on. The old one stays in the history, with both dates.

    Args:
        owner: The user; `None` means the access token's subject.
        item: The item, or its id.
        value: The right value, up to 500 characters.
        polarity: Its polarity; by default as it was.
        actor: Who corrects it; the user by default.
        redactor: Removes secrets and personal data before storage.

    Returns:
        The id of the item that holds now.

    Raises:
        InvalidInputError: The value is not valid, or mentions an opted-out topic.
        NotFoundError: There is no such item.
    """
    sign = None if polarity is None else _polarity(polarity)
    made = {"value": _text("value", value, LONGEST_VALUE, redactor), "polarity": sign}
    return (yield from _edit(owner, "correct", actor, item_id=_item_id(item), item=made))


def delete(owner: str | None, item: ProfileItem | str, *, actor: str | None = None) -> Flow[None]:
    """Delete an item with its quotes. No conversation brings it back; a person may remember it again.

    Args:
        owner: The user; `None` means the access token's subject.
        item: The item, or its id.
        actor: Who deletes it; the user by default.

    Raises:
        NotFoundError: There is no such item.
    """
    yield from _edit(owner, "delete", actor, item_id=_item_id(item))


def pin(owner: str | None, item: ProfileItem | str, *, pinned: bool = True, actor: str | None = None) -> Flow[None]:
    """Pin an item, so that it comes before all others, or unpin it.

    Args:
        owner: The user; `None` means the access token's subject.
        item: The item, or its id.
        pinned: Whether it is pinned from now on.
        actor: Who does it; the user by default.

    Raises:
        NotFoundError: There is no such item.
    """
    boolean("pinned", pinned)
    yield from _edit(owner, "pin" if pinned else "unpin", actor, item_id=_item_id(item))


def read_page(
    owner: str | None, *, states: Sequence[ProfileState], limit: int, after: Mapping[str, Any] | None = None
) -> Flow[Mapping[str, Any]]:
    """Read a page of a profile, as `memory_profile` answers it: its items in their order, and where the next begins.

    Args:
        owner: The user; `None` means the access token's subject.
        states: Which states.
        limit: The maximum number of items, up to 500. Very long ones make fewer.
        after: The `after` of the page before; `None` starts at the beginning.
    """
    asked = {"p_states": list(states), "p_limit": limit, "p_after": after, "p_user_id": owner}
    page: Mapping[str, Any] = yield from call("memory_profile", asked)
    return page


def export_page(
    owner: str | None, after: Mapping[str, Any] | None = None
) -> Flow[tuple[dict[str, Any], Mapping[str, Any] | None]]:
    """Read a page of a profile as an export has it, what was deleted included; the first with what the user allows.

    Args:
        owner: The user; `None` means the access token's subject.
        after: Where the page begins, as the page before says; `None` is the beginning.

    Returns:
        `profile` and `consents`, and where the next page begins; `None` if it is the last.
    """
    consents = (yield from call("memory_consents", {"p_user_id": owner})) if after is None else []
    asked = {"p_states": list(_EXPORTED), "p_limit": _EXPORT_PAGE, "p_after": after, "p_user_id": owner}
    page = yield from call("memory_profile", asked)
    return {"kind": "profile", "profile": page["items"], "consents": consents}, page["after"]


def consent(owner: str | None, purpose: Purpose, allowed: bool, *, actor: str) -> Flow[bool]:
    """Set what the user allows to be derived. What they refuse is derived no more, and what there is goes.

    Args:
        owner: The user; `None` means the access token's subject.
        purpose: The purpose.
        allowed: Whether they allow it.
        actor: Who says so; recorded with the time.

    Returns:
        Whether that is new.

    Raises:
        ConfigurationError: There is no such purpose.
        InvalidInputError: `allowed` is not a boolean, or the actor is empty.
    """
    choice("purpose", purpose, get_args(Purpose))
    if not isinstance(allowed, bool):
        raise InvalidInputError("allowed must be True or False.", hint="Pass allowed=False to refuse it.")
    arguments = {"p_purpose": purpose, "p_allowed": allowed, "p_by": check_actor(actor)}
    answer = yield from call("memory_consent", {**arguments, "p_user_id": owner})
    is_new: bool = answer["changed"]
    return is_new


def consents(owner: str | None) -> Flow[list[Consent]]:
    """List what the user allows or refuses to have derived, with who said so and when.

    Args:
        owner: The user; `None` means the access token's subject.
    """
    rows = yield from call("memory_consents", {"p_user_id": owner})
    return [value_of(Consent, row, actor=row["by"]) for row in rows]


def stored_text(text: str, redactor: Redactor | None) -> str:
    """Return the words of a text as `remember` stores them, so that they can be shown to somebody first.

    Args:
        text: What is to be remembered.
        redactor: Removes secrets and personal data before storage.

    Raises:
        InvalidInputError: The text is empty, or has more than 500 characters.
    """
    return _text("text", text, LONGEST_VALUE, redactor)


def _read(owner: str | None, arguments: Mapping[str, Any], limit: int | None) -> Flow[list[ProfileItem]]:
    found: list[ProfileItem] = []
    after = None
    while limit is None or len(found) < limit:
        size = _PAGE if limit is None else min(_PAGE, limit - len(found))
        page = yield from call("memory_profile", {**arguments, "p_user_id": owner, "p_limit": size, "p_after": after})
        found += [to_item(row) for row in page["items"]]
        after = page["after"]
        if after is None:
            break
    return found


def _edit(
    owner: str | None,
    action: str,
    actor: str | None,
    *,
    item_id: str | None = None,
    item: Mapping[str, Any] | None = None,
    author_kind: str = "person",
) -> Flow[str]:
    choice("author_kind", author_kind, ("person", "application", "model"))
    arguments = {
        "p_action": action,
        "p_id": item_id,
        "p_item": item,
        "p_by": None if actor is None else check_actor(actor),
        "p_author_kind": author_kind,
    }
    answer = yield from call("memory_edit_profile", {**arguments, "p_user_id": owner})
    return str(answer["item_id"])


def _item_id(item: ProfileItem | str) -> str:
    return item.id if isinstance(item, ProfileItem) else as_uuid("item", item)


def _polarity(polarity: object) -> int:
    if isinstance(polarity, bool) or not isinstance(polarity, int) or polarity not in (-1, 0, 1):
        raise InvalidInputError(
            "polarity must be -1, 0 or 1.", hint="Pass polarity=-1 for what the user does not want."
        )
    return polarity


def _text(name: str, text: object, longest: int, redactor: Redactor | None) -> str:
    words = str(redact_value(" ".join(clean(text).split()), redactor)) if isinstance(text, str) else ""
    if not 0 < len(words) <= longest:
        raise InvalidInputError(
            f"{name} must be a text of 1 to {longest} characters.", hint="Say it in a sentence or a few words."
        )
    return words


def to_item(row: Mapping[str, Any]) -> ProfileItem:
    """Return an item from a row of `memory_profile`."""
    return value_of(ProfileItem, row, evidence=tuple(value_of(ProfileEvidence, each) for each in row["evidence"]))
