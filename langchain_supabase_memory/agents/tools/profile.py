"""Tools for what is known of the user: one that reads it, and one that remembers something after asking the person.

Only what is held is told. What is proposed is for the person to confirm, and no model reads it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langgraph.types import interrupt
from pydantic import BaseModel, Field

from langchain_supabase_memory.agents.tools.binding import Answer, Binding, Bindings, ToolCall, tool
from langchain_supabase_memory.agents.tools.output_limit import Passage, date_of, fit_passages, name, note, wrap
from langchain_supabase_memory.checks import boolean
from langchain_supabase_memory.errors import InvalidInputError, TooLargeError
from langchain_supabase_memory.language.injection import is_injection
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations import profile
from langchain_supabase_memory.operations.profile import LONGEST_SUBJECT, LONGEST_VALUE, ProfileKind
from langchain_supabase_memory.values import SPACE

if TYPE_CHECKING:
    from datetime import tzinfo
    from typing import Unpack

    from langchain_core.tools import BaseTool

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.profile import ProfileEvidence, ProfileItem

NAME: Final = "remember"
ASSISTANT: Final = "assistant"
"""Who suggests what a person was not asked about."""

_LARGEST: Final = 2**31 - 1
_SHORTEST: Final = 60
"""The minimum number of characters of an item in a result; no more items are read than can fit."""

_QUOTES: Final = 2
"""How many quotes are shown of an item, those that were said last."""

_QUOTE: Final = 200
"""The maximum number of characters shown of a quote."""

_READ: Final = (
    "Read what is remembered about the user from all of their conversations: how they want to be answered, what must "
    "not be, preferences, traits and facts, each with since when it holds and where the user said so."
)
_REMEMBER: Final = (
    "Remember something about the user for all later conversations. Use it when the user asks for it, or says how "
    "something always is for them. {asked}"
)
_ASKED: Final = "The user is asked before anything is remembered. Remember one thing at a time."
_WAITS: Final = "It waits for the user's confirmation, and no conversation uses it before."
_NOTHING: Final = "Nothing was remembered"
_PROPOSED: Final = (
    "It is proposed, and no conversation uses it until the user confirms it: with `supabase-memory profile confirm`, "
    "or on the profile's page in the inspector or the application. Tell the user so."
)


class _ReadArguments(BaseModel):
    skip: int = Field(default=0, ge=0, le=_LARGEST, description="How many to skip, as the result before says.")


class _RememberArguments(BaseModel):
    text: str = Field(
        min_length=1,
        max_length=LONGEST_VALUE,
        description="What to remember, in one short sentence and in the user's words.",
    )
    kind: ProfileKind = Field(
        default="fact", description="What it is. An instruction says how to answer; a constraint, what must not be."
    )
    about: str | None = Field(
        default=None,
        max_length=LONGEST_SUBJECT,
        description="What it is about in a word or two, such as home. It takes the place of what is known about that.",
    )


def get_profile_tool(memory: SupabaseMemory, **bound: Unpack[Bindings]) -> BaseTool:
    """Create a tool that reads what is known of the user.

    Args:
        memory: The memory that stores the conversations.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `get_profile(skip=0)`, sync and async. What holds with another agent alone is not in it.
    """
    return tool("get_profile", _READ, _ReadArguments, Binding.of(memory, bound), _read_own)


def remember_tool(memory: SupabaseMemory, *, ask: bool = True, **bound: Unpack[Bindings]) -> BaseTool:
    """Create a tool that remembers something about the user.

    With `ask`, the run stops before anything is stored (LangGraph's `interrupt`, which needs a checkpointer). The
    interrupt has the form of LangChain's `HumanInTheLoopMiddleware`: `action_requests` with the question as the
    `description`. Resume the run by `Command(resume={"decisions": [{"type": "approve"}]})`; whatever else is returned
    stores nothing. A text is refused that tells the assistant to set rules aside, to give a secret away, or to send
    things to an address. It is not one of the toolkit's tools, which only read.

    Args:
        memory: The memory that stores the conversation.
        ask: Whether the person is asked first. Without it the item is proposed: no prompt has it until the person
            confirms it.
        bound: `thread_id`, `agent_id`, `characters`, `time_zone` and `on_error`; see `tools.binding.Binding`.

    Returns:
        The tool `remember(text, kind="fact", about=None)`, sync and async.

    Raises:
        ConfigurationError: `ask` is no boolean.
    """
    binding = Binding.of(memory, bound)
    boolean("ask", ask)
    description = _REMEMBER.format(asked=_ASKED if ask else _WAITS)
    return tool(NAME, description, _RememberArguments, binding, partial(_remember, ask=ask))


def _read_own(call: ToolCall, skip: int = 0) -> Flow[Answer]:
    return read_profile(call, skip, agent_id=call.scope("agent").agent_id)


def read_profile(call: ToolCall, skip: int = 0, *, agent_id: str | None = None) -> Flow[Answer]:
    """Return what is held of the user, instructions and constraints first.

    Args:
        call: The call.
        skip: How many items to skip.
        agent_id: Only what holds with this agent, and with all; by default with any.
    """
    owner = person_of(call)
    most = skip + call.binding.characters // _SHORTEST + 1
    items = yield from profile.read(owner, agent_id=agent_id, states=("held",), limit=most)
    rest = items[skip:]
    if not rest:
        return note("There is no more." if items else "Nothing is remembered about the user yet."), []
    passages = [_passage(each, call.zone) for each in rest]
    more = f"There is more: go on with skip={_LARGEST}."
    fits = fit_passages(passages, call.binding.characters, more)
    shown = rest[: max(fits.full_count, 1)]  # one that would be cut begins the next page
    following = skip + len(shown)
    more = f"There is more: go on with skip={following}." if following < len(items) else ""
    return wrap(fits.elements[: len(shown)], more), [
        _source(each, said) for each in shown for said in each.evidence[-_QUOTES:]
    ]


@dataclass(frozen=True)
class TextToRemember:
    """Something that can be remembered, as it will be stored.

    Attributes:
        owner: The user; `None` means the access token's subject.
        text: The words.
        kind: What it is.
        about: What it is about, if that is said.
    """

    owner: str | None
    text: str = field(repr=False)
    kind: ProfileKind
    about: str | None = field(repr=False)

    def question(self) -> str:
        """Return what the person is asked, with one line for each fact, in which all characters are visible."""
        lines = ["Remember this about you, for all later conversations?", f"Text: {spell_out(self.text)}"]
        lines.append(f"Kind: {self.kind}")
        if self.about is not None:
            lines.append(f"About: {spell_out(self.about)} (it takes the place of what is known about that)")
        return "\n".join(lines)

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the tool, as they will be stored."""
        return {"text": self.text, "kind": self.kind, **({} if self.about is None else {"about": self.about})}


def check_text(call: ToolCall, text: str, kind: ProfileKind, about: str | None) -> Flow[TextToRemember]:
    """Check what is to be remembered, before anybody is asked.

    Args:
        call: The call.
        text: The words.
        kind: What it is.
        about: What it is about.

    Raises:
        InvalidInputError: It cannot be remembered; the text tells a model what to do next.
    """
    owner = person_of(call)
    redactor = call.binding.memory._services.redactor
    words = profile.stored_text(text, redactor)
    subject = None if about is None or not about.strip() else profile.stored_text(about, redactor)
    if is_injection(words if subject is None else f"{subject}: {words}"):
        raise InvalidInputError(
            f"This asks to give secrets away, to set rules aside, or to send things somewhere. {_NOTHING}.",
            hint="Tell the user; do not try again in other words.",
        )
    for each in (yield from profile.consents(owner)):
        if each.purpose == "profile" and not each.allowed:
            raise _unwanted()
    return TextToRemember(owner, words, kind, subject)


def remember_text(item: TextToRemember, *, assistant: str | None) -> Flow[Answer]:
    """Remember it.

    Args:
        item: What is remembered.
        assistant: The assistant that suggests it, if the person has not agreed: then it is proposed.

    Raises:
        InvalidInputError: It cannot be remembered; the text tells a model what to do next.
    """
    try:
        yield from profile.remember(
            item.owner,
            item.text,
            kind=item.kind,
            subject=item.about,
            actor=assistant,
            author_kind="person" if assistant is None else "model",
        )
    except InvalidInputError:
        raise _unwanted() from None
    except TooLargeError:
        raise InvalidInputError(
            f"The profile is full. {_NOTHING}.", hint="Tell the user to delete what they do not need there."
        ) from None
    return note("It is remembered for all later conversations." if assistant is None else _PROPOSED), []


def _remember(
    call: ToolCall, text: str, kind: ProfileKind = "fact", about: str | None = None, *, ask: bool
) -> Flow[Answer]:
    if ask and not call.is_first:  # of questions asked at once, one's answer might be taken for another's
        return note(f"{_NOTHING}: remember one thing at a time. Call this again after the other call."), []
    wanted = yield from check_text(call, text, kind, about)
    if ask and not _has_agreed(wanted):
        return note(f"The user did not agree. {_NOTHING}; do not ask again."), []
    return (yield from remember_text(wanted, assistant=None if ask else ASSISTANT))


def _has_agreed(item: TextToRemember) -> bool:
    """Stop the run until the person has answered, and return whether they agree."""
    request = {"name": NAME, "args": item.arguments(), "description": item.question()}
    review = {"action_name": NAME, "allowed_decisions": ["approve", "reject"]}
    try:
        answer: Any = interrupt({"action_requests": [request], "review_configs": [review]})
    except (RuntimeError, KeyError):  # no graph runs here
        raise InvalidInputError(
            f"Nobody can be asked here. {_NOTHING}.", hint="Tell the user how to remember it by themselves."
        ) from None
    decisions = answer.get("decisions") if isinstance(answer, dict) else None
    return isinstance(decisions, list) and [
        each.get("type") if isinstance(each, dict) else None for each in decisions
    ] == ["approve"]


def _unwanted() -> InvalidInputError:
    return InvalidInputError(
        f"The user does not want this to be remembered. {_NOTHING}.", hint="Tell the user; do not try again."
    )


def person_of(call: ToolCall) -> str | None:
    """Return the user of a call.

    Raises:
        InvalidInputError: The conversation is a space's, which has no profile.
    """
    owner = call.scope("user").user_id
    if owner is not None and owner.startswith(SPACE):
        raise InvalidInputError(
            "This conversation belongs to a team. What is remembered about a person stays out of it.",
            hint="Go on without it.",
        )
    return owner


def describe_item(item: ProfileItem) -> str:
    """Return what an item says, in words."""
    words = item.value
    if item.polarity < 0:
        words = f"{'does not like or want' if item.kind == 'preference' else 'not'}: {words}"
    elif item.polarity > 0 and item.kind == "preference" and item.subject.casefold() == item.value.casefold():
        words = f"likes or wants: {words}"
    elif item.subject.casefold() != item.value.casefold():
        words = f"{item.subject}: {words}"
    return words if item.condition is None else f"{words} ({item.condition})"


def describe_basis(item: ProfileItem, person: str = "the user") -> str:
    """Return why an item holds, in words.

    Args:
        item: The item.
        person: What the user is called in the sentence.
    """
    count = len({(each.agent_id, each.thread_id) for each in item.evidence})
    if item.basis == "person":
        who = person if item.author_kind != "application" else name(item.author)
        is_written = item.author_kind in ("person", "application") and not item.evidence
        return f"{who} wrote it" if is_written else f"{person} confirmed it"
    if item.basis == "inferred" and item.suggested_at is not None:
        verb = "it was imported from" if item.author_kind == "import" else "it was suggested by"
        return f"{verb} {name(item.author)}, and nobody has confirmed it"
    return {
        "corrected": f"{person} corrected it",
        "stated": f"{person} said that it lasts",
        "repeated": f"{person} said it in {count} conversations",
    }.get(item.basis, f"{person} said it, and not that it lasts")


def describe_place(evidence: ProfileEvidence, zone: tzinfo) -> str:
    """Return where something was said, in words, with the quote.

    Args:
        evidence: The evidence.
        zone: The time zone of its date.
    """
    quote = " ".join(evidence.quote.split())
    quote = quote if len(quote) <= _QUOTE else f"{quote[:_QUOTE]} …"
    where = f"conversation {name(evidence.thread_id)}, message {evidence.sequence}"
    return f'{date_of(evidence.at, zone)}, {where}: "{quote}"'


def _passage(item: ProfileItem, zone: tzinfo) -> Passage:
    since = item.held_at or item.first_seen_at
    attributes: dict[str, str | int] = {"id": item.id, "since": date_of(since, zone)}
    if item.agent_id is not None:
        attributes["agent"] = name(item.agent_id)
    lines = [describe_item(item), f"Why: {describe_basis(item)}."]
    lines += [f"Said {describe_place(each, zone)}" for each in item.evidence[-_QUOTES:]]
    return Passage(item.kind, "\n".join(lines), attributes)


def _source(item: ProfileItem, evidence: ProfileEvidence) -> dict[str, Any]:
    return {
        "item_id": item.id,
        "thread_id": evidence.thread_id,
        "agent_id": evidence.agent_id,
        "from_sequence": evidence.sequence,
        "to_sequence": evidence.sequence,
        "message_ids": [evidence.message_id],
    }
