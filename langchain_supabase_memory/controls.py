"""People in control: what is not to be remembered, how much a chunk matters, summaries that a person edits.

Who changes what, and when, is noted with each change. Boards have verbs of their own, see `boards.verbs.Boards`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeVar

from langchain_supabase_memory import summaries
from langchain_supabase_memory.boards.verbs import LONGEST_SUMMARY
from langchain_supabase_memory.conversations import named, person
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.flow import Flow, call
from langchain_supabase_memory.messages.redaction.payload import redacted_value
from langchain_supabase_memory.messages.sanitizer import clean
from langchain_supabase_memory.models import Chunk, SummaryResult
from langchain_supabase_memory.tokens import count_tokens

if TYPE_CHECKING:
    from langchain_supabase_memory.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.models import ConversationKey
    from langchain_supabase_memory.settings import SummaryPolicy

T = TypeVar("T")

USEFUL: Final = 0.9
"""The importance of a chunk that somebody called useful."""

USELESS: Final = 0.1
"""The importance of a chunk that somebody called of no use."""

LONGEST_TOPIC: Final = 200
"""The most characters of a topic that is not to be remembered."""


@dataclass(frozen=True)
class OptOut:
    """Something that is not to be remembered.

    Attributes:
        topic: The topic; `None` for a whole conversation.
        thread_id: The conversation; `None` for all of the user's.
        agent_id: Its agent.
        by: Who said so.
        at: When.
    """

    topic: str | None = field(repr=False)
    thread_id: str | None
    agent_id: str | None
    by: str
    at: datetime


@dataclass(frozen=True)
class ControlChange:
    """A change of an opt-out, a rating or a summary.

    Attributes:
        action: `opt_out`, `opt_in`, `rate`, `edit_summary`, `delete_summary` or `regenerate_summary`.
        subject: The topic, the chunk's id or the summary's number; `None` for a whole conversation.
        before: What stood there before, as a text; `None` where there was nothing, or where that is gone meanwhile.
        thread_id: The conversation; `None` for all of the user's.
        agent_id: Its agent.
        changed_by: Who did it.
        changed_at: When.
    """

    action: Literal["opt_out", "opt_in", "rate", "edit_summary", "delete_summary", "regenerate_summary"]
    subject: str | None = field(repr=False)
    before: str | None = field(repr=False)
    thread_id: str | None
    agent_id: str | None
    changed_by: str
    changed_at: datetime


class Runner(Protocol):
    """What drives the flows: a memory."""

    model: Any
    redactor: Redactor | None

    def key(self, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> ConversationKey:
        """The conversation that ids name."""

    def within(self, policy: SummaryPolicy | None) -> SummaryPolicy:
        """The policy with every number given."""

    def run(self, flow: Flow[T], *, model: Any = None) -> T:
        """Drive a flow."""

    async def arun(self, flow: Flow[T], *, model: Any = None) -> T:
        """Drive a flow."""


def opt_out(key: ConversationKey, thread_id: str | None, topic: str | None, by: str) -> Flow[bool]:
    """Remember nothing of a conversation, or of a topic in it or in all. Returns whether that is new."""
    answer = yield from call("memory_opt_out", _opted(key, thread_id, topic, by))
    is_new: bool = answer["is_new"]
    return is_new


def opt_in(key: ConversationKey, thread_id: str | None, topic: str | None, by: str) -> Flow[bool]:
    """Remember it again. Returns whether it had not been remembered."""
    answer = yield from call("memory_opt_in", _opted(key, thread_id, topic, by))
    removed: bool = answer["removed"]
    return removed


def opt_outs(user_id: str | None, agent_id: str | None, thread_id: str | None) -> Flow[list[OptOut]]:
    """What is not to be remembered, the oldest first."""
    arguments = {"p_user_id": user_id, "p_agent_id": agent_id, "p_thread_id": thread_id}
    rows = yield from call("memory_opt_outs", arguments)
    return [OptOut(**{**row, "at": datetime.fromisoformat(row["at"])}) for row in rows]


def changes(user_id: str | None, agent_id: str | None, thread_id: str | None, limit: int) -> Flow[list[ControlChange]]:
    """What was changed, the newest first."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= _MOST:
        raise InvalidInputError(f"limit must be a whole number from 1 to {_MOST}.", hint="100 is the default.")
    rows = yield from call(
        "memory_control_changes",
        {"p_user_id": user_id, "p_agent_id": agent_id, "p_thread_id": thread_id, "p_limit": limit},
    )
    names = ("action", "subject", "before", "thread_id", "agent_id", "changed_by")
    return [
        ControlChange(**{name: row[name] for name in names}, changed_at=datetime.fromisoformat(row["changed_at"]))
        for row in rows
    ]


def rate(key: ConversationKey, thread_id: str | None, chunk_id: str, importance: float, by: str) -> Flow[float]:
    """Say how much a chunk matters. Returns its importance from now on."""
    arguments = {**named(key), "p_thread_id": thread_id, "p_chunk_id": chunk_id, "p_importance": importance}
    answer = yield from call("memory_rate_chunk", {**arguments, "p_by": person(by)})
    return float(answer["importance"])


def edit_summary(
    key: ConversationKey,
    action: Literal["edit", "delete", "regenerate"],
    by: str,
    *,
    number: int | None = None,
    text: str | None = None,
    include_edited: bool = False,
) -> Flow[int]:
    """What a person does with segments. Returns how many were taken back."""
    answer = yield from call(
        "memory_edit_summary",
        {
            **named(key),
            "p_action": action,
            "p_by": person(by),
            "p_number": number,
            "p_text": text,
            "p_tokens": None if text is None else max(1, count_tokens(text)),
            "p_include_edited": include_edited,
        },
    )
    return int(answer["taken_back"])


class Controls:
    """The verbs by which people control what is remembered. `by` is who does it, and is noted with the time.

    Args:
        memory: The memory.
    """

    def __init__(self, memory: Runner) -> None:
        self._memory = memory

    def opt_out(
        self,
        *,
        by: str,
        thread_id: str | None = None,
        topic: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> bool:
        """Do not remember a conversation, or a topic.

        A conversation's messages stay, for the chat needs them; all that is derived from it goes in the same
        transaction, and nothing new is made: no chunk, no summary, no board. What had moved to long-term memory goes
        with the next `forget_source`.

        What mentions a topic is not indexed, nor written on a board, nor left in a summary; what is there already goes.
        A topic is one word or several that stand next to one another. Case, accents and punctuation do not matter, nor
        do endings in English and in the conversation's language ("divorce" is "divorced" too, but "health" is not
        "healthy", nor "hospital": name each). In scripts that set no spaces, and in Korean, its characters are looked
        for. The messages stay. A writer is told to leave the topic out; of what it writes all the same, the sentences
        that mention the topic are taken out, and what says it in other words is left to the writer.

        Args:
            by: Who says so.
            thread_id: The conversation, which need not have begun; with a topic, the only one that it is about.
            topic: The topic, up to 200 characters; without `thread_id` in all conversations of the user, also those to
                come.
            user_id: The owner; the memory's by default.
            agent_id: The conversation's agent; the memory's by default.

        Returns:
            Whether that is new.

        Raises:
            InvalidInputError: Neither is named, or the topic has no letters.
        """
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return self._memory.run(opt_out(key, thread_id, topic, by))

    async def aopt_out(
        self,
        *,
        by: str,
        thread_id: str | None = None,
        topic: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> bool:
        """The async twin of `opt_out`."""
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return await self._memory.arun(opt_out(key, thread_id, topic, by))

    def opt_in(
        self,
        *,
        by: str,
        thread_id: str | None = None,
        topic: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> bool:
        """Remember again what `opt_out` with the same arguments had named.

        A conversation is due again from its beginning. Of a topic, what was not indexed is indexed again; summaries and
        boards stay as they are until they are regenerated.

        Returns:
            Whether it had not been remembered.
        """
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return self._memory.run(opt_in(key, thread_id, topic, by))

    async def aopt_in(
        self,
        *,
        by: str,
        thread_id: str | None = None,
        topic: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> bool:
        """The async twin of `opt_in`."""
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return await self._memory.arun(opt_in(key, thread_id, topic, by))

    def opt_outs(
        self, *, thread_id: str | None = None, user_id: str | None = None, agent_id: str | None = None
    ) -> list[OptOut]:
        """What is not to be remembered, with who said so and when: of all the user's conversations, or of one."""
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return self._memory.run(opt_outs(key.user_id, _agent(key, thread_id, agent_id), thread_id))

    async def aopt_outs(
        self, *, thread_id: str | None = None, user_id: str | None = None, agent_id: str | None = None
    ) -> list[OptOut]:
        """The async twin of `opt_outs`."""
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return await self._memory.arun(opt_outs(key.user_id, _agent(key, thread_id, agent_id), thread_id))

    def rate(
        self,
        chunk: Chunk | str,
        *,
        by: str,
        useful: bool | None = None,
        importance: float | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> float:
        """Say how much a chunk matters: recall and promotion go by it, and the same words keep it for good.

        Args:
            chunk: The chunk, as it was recalled, or its id.
            by: Who says so.
            useful: Whether it was of use: an importance of 0.9 or 0.1.
            importance: Or its importance itself, from 0 to 1.
            thread_id: The conversation; by default the chunk's, or all of the user's are looked through.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the chunk's, or the memory's, by default.

        Returns:
            Its importance from now on.

        Raises:
            InvalidInputError: Not exactly one of `useful` and `importance` is given, or that is none.
            NotFoundError: There is no such chunk.
        """
        key, thread, weight = self._rated(chunk, useful, importance, thread_id, user_id, agent_id)
        return self._memory.run(rate(key, thread, _id(chunk), weight, by))

    async def arate(
        self,
        chunk: Chunk | str,
        *,
        by: str,
        useful: bool | None = None,
        importance: float | None = None,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> float:
        """The async twin of `rate`."""
        key, thread, weight = self._rated(chunk, useful, importance, thread_id, user_id, agent_id)
        return await self._memory.arun(rate(key, thread, _id(chunk), weight, by))

    def edit_summary(
        self,
        number: int,
        text: str,
        *,
        thread_id: str,
        by: str,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> int:
        """Write what a segment of the rolling summary says. The next goes on from there.

        What was built on it is taken back and written anew when it is due. Regeneration leaves what a person wrote as
        it is; it goes only with what it was made from, when a message of it or before it is edited or forgotten.

        Args:
            number: The segment, as `memory.summaries` numbers them.
            text: What it says, up to 10,000 characters.
            thread_id: The conversation's thread.
            by: Who writes it.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the memory's by default.

        Returns:
            How many segments were taken back.

        Raises:
            InvalidInputError: It is no text, is too long, or mentions a topic that is not to be remembered.
            NotFoundError: There is no such conversation or segment.
        """
        key = self._memory.key(thread_id, user_id, agent_id)
        return self._memory.run(
            edit_summary(key, "edit", by, number=number, text=_summary(text, self._memory.redactor))
        )

    async def aedit_summary(
        self,
        number: int,
        text: str,
        *,
        thread_id: str,
        by: str,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> int:
        """The async twin of `edit_summary`."""
        key = self._memory.key(thread_id, user_id, agent_id)
        return await self._memory.arun(
            edit_summary(key, "edit", by, number=number, text=_summary(text, self._memory.redactor))
        )

    def delete_summary(
        self, number: int, *, thread_id: str, by: str, user_id: str | None = None, agent_id: str | None = None
    ) -> int:
        """Take a segment back and all that were built on it; they are written anew when that is due.

        What was made from messages that have expired cannot be written anew.

        Returns:
            How many segments were taken back.

        Raises:
            NotFoundError: There is no such conversation or segment.
        """
        key = self._memory.key(thread_id, user_id, agent_id)
        return self._memory.run(edit_summary(key, "delete", by, number=number))

    async def adelete_summary(
        self, number: int, *, thread_id: str, by: str, user_id: str | None = None, agent_id: str | None = None
    ) -> int:
        """The async twin of `delete_summary`."""
        key = self._memory.key(thread_id, user_id, agent_id)
        return await self._memory.arun(edit_summary(key, "delete", by, number=number))

    def regenerate_summaries(
        self,
        *,
        thread_id: str,
        by: str,
        include_edited: bool = False,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> SummaryResult:
        """Write the summaries anew from the messages: those after the last that a person wrote.

        Args:
            thread_id: The conversation's thread.
            by: Who wants that.
            include_edited: Whether what a person wrote is written anew as well. What was made from messages that have
                expired stays in any case.
            user_id: The owner; the memory's by default.
            agent_id: The agent; the memory's by default.

        Returns:
            What was written; nothing, if the memory has no model: then they are written when that is due.

        Raises:
            NotFoundError: There is no such conversation.
        """
        key = self._memory.key(thread_id, user_id, agent_id)
        return self._memory.run(self._regenerate(key, by, include_edited))

    async def aregenerate_summaries(
        self,
        *,
        thread_id: str,
        by: str,
        include_edited: bool = False,
        user_id: str | None = None,
        agent_id: str | None = None,
    ) -> SummaryResult:
        """The async twin of `regenerate_summaries`."""
        key = self._memory.key(thread_id, user_id, agent_id)
        return await self._memory.arun(self._regenerate(key, by, include_edited))

    def changes(
        self,
        *,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 100,
    ) -> list[ControlChange]:
        """Who changed what and when, the newest first: of all the user's conversations, or of one."""
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return self._memory.run(changes(key.user_id, _agent(key, thread_id, agent_id), thread_id, limit))

    async def achanges(
        self,
        *,
        thread_id: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        limit: int = 100,
    ) -> list[ControlChange]:
        """The async twin of `changes`."""
        key = self._memory.key(_any(thread_id), user_id, agent_id)
        return await self._memory.arun(changes(key.user_id, _agent(key, thread_id, agent_id), thread_id, limit))

    def _regenerate(self, key: ConversationKey, by: str, include_edited: bool) -> Flow[SummaryResult]:
        yield from edit_summary(key, "regenerate", by, include_edited=include_edited)
        model = self._memory.model
        if model is None:
            return SummaryResult(-1)
        return (yield from summaries.summarize(key, self._memory.within(None), model=model.name, patient=False))

    def _rated(
        self,
        chunk: Chunk | str,
        useful: bool | None,
        importance: float | None,
        thread_id: str | None,
        user_id: str | None,
        agent_id: str | None,
    ) -> tuple[ConversationKey, str | None, float]:
        if (useful is None) == (importance is None):
            raise InvalidInputError("How much it matters is not said.", hint="Pass useful=True, or importance=0.9.")
        if useful is not None:
            weight = USEFUL if useful else USELESS
        elif isinstance(importance, bool) or not isinstance(importance, (int, float)) or not 0 <= importance <= 1:
            raise InvalidInputError("importance must be a number from 0 to 1.", hint="Pass importance=0.9, say.")
        else:
            weight = float(importance)
        if isinstance(chunk, Chunk) and thread_id is None:
            thread_id, agent_id = chunk.thread_id, chunk.agent_id
        return self._memory.key(_any(thread_id), user_id, agent_id), thread_id, weight


_MOST: Final = 500


def _opted(key: ConversationKey, thread_id: str | None, topic: str | None, by: str) -> dict[str, Any]:
    if thread_id is None and topic is None:
        raise InvalidInputError("Neither a conversation nor a topic is named.", hint="Pass thread_id, topic, or both.")
    if topic is not None:
        topic = " ".join(clean(topic).split()) if isinstance(topic, str) else ""
        if not topic or len(topic) > LONGEST_TOPIC:
            raise InvalidInputError(
                f"A topic is a text of 1 to {LONGEST_TOPIC} characters.", hint="Name it in a word or a few."
            )
    return {**named(key), "p_thread_id": thread_id, "p_topic": topic, "p_by": person(by)}


def _summary(text: str, redactor: Redactor | None) -> str:
    words = str(redacted_value(clean(text).strip(), redactor)) if isinstance(text, str) else ""
    if not words or len(words) > LONGEST_SUMMARY:
        raise InvalidInputError(
            f"A summary is a text of 1 to {LONGEST_SUMMARY:,} characters.", hint="To be rid of it, delete it."
        )
    return words


def _id(chunk: Chunk | str) -> str:
    return chunk.id if isinstance(chunk, Chunk) else chunk


def _any(thread_id: str | None) -> str:
    return "any" if thread_id is None else thread_id


def _agent(key: ConversationKey, thread_id: str | None, agent_id: str | None) -> str | None:
    """In a conversation the memory's agent by default, else all."""
    return agent_id if thread_id is None else key.agent_id
