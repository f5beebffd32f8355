"""People in control: what is not to be remembered, how much a chunk matters, summaries that a person edits.

Who changes what, and when, is noted with each change. What they change of boards is in `boards.editing`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.operations import summaries
from langchain_supabase_memory.operations.arguments import check_actor, conversation_ids, scope_ids
from langchain_supabase_memory.operations.boards.editing import LONGEST_SUMMARY
from langchain_supabase_memory.values import Chunk, Scope, SummaryResult

if TYPE_CHECKING:
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey

USEFUL: Final = 0.9
"""The importance of a chunk that somebody called useful."""

USELESS: Final = 0.1
"""The importance of a chunk that somebody called of no use."""

UNDO: Final = timedelta(minutes=1)
"""How long opting in undoes an opt-out; SQL decides by `memory.opt_out_undos.expires_at`."""

LONGEST_TOPIC: Final = 200
"""The most characters of a topic that is not to be remembered."""


@dataclass(frozen=True)
class OptOut:
    """Something that is not to be remembered.

    Attributes:
        topic: The topic; `None` for a whole conversation.
        thread_id: The conversation; `None` for all of the user's.
        agent_id: Its agent.
        actor: Who said so.
        at: When.
    """

    topic: str | None = field(repr=False)
    thread_id: str | None
    agent_id: str | None
    actor: str
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


def opt_out(scope: Scope, topic: str | None = None, *, actor: str) -> Flow[bool]:
    """Do not remember a conversation, or a topic in it or in all of a user's conversations, also those to come.

    Of a conversation the messages stay, for the chat needs them; all that is derived from it goes in the same
    transaction, and nothing new is made: no chunk, no summary, no board. What a person or the application wrote,
    pinned, rated or deleted on its board stays until they delete it; a segment of the summary that one edited
    stands for messages, and goes. What had moved to long-term memory goes with the next `forget_source`. The
    conversation need not have begun. For a minute `opt_in` undoes it; later it makes the rest anew.

    What mentions a topic is not indexed, nor written on a board, nor left in a summary; what is there already
    goes. A topic is one word or several that stand next to one another. Case, accents and punctuation do not
    matter, nor do endings in English and in the conversation's language ("divorce" is "divorced" too, but "health"
    is not "healthy", nor "hospital": name each). In scripts that set no spaces, and in Korean, its characters are
    looked for. The messages stay. A writer is told to leave the topic out; of what it writes all the same, the
    sentences that mention the topic are taken out, and what says it in other words is left to the writer.

    Args:
        scope: What is not to be remembered.
        topic: The topic, up to 200 characters; `None` for a conversation itself.
        actor: Who says so; it is noted with the time.

    Returns:
        Whether that is new.

    Raises:
        InvalidInputError: The topic has no letters, or neither a topic nor a conversation is named.
    """
    answer = yield from call("memory_opt_out", _parse_opt_out(scope, topic, actor))
    is_new: bool = answer["is_new"]
    return is_new


def opt_in(scope: Scope, topic: str | None = None, *, actor: str) -> Flow[bool]:
    """Remember again what `opt_out` with the same arguments had named.

    Within a minute of `opt_out` it is undone: summaries, the board, ratings and the title are as they were, and
    chunks are indexed again. What was written in that minute stays. Where messages changed or went in it, and
    after it, a conversation is due again from its beginning; of a topic, what was not indexed is indexed again,
    and summaries and boards stay as they are until they are regenerated.

    Args:
        scope: Where to look.
        topic: The topic; `None` for a conversation itself.
        actor: Who says so; it is noted with the time.

    Returns:
        Whether it had not been remembered.
    """
    answer = yield from call("memory_opt_in", _parse_opt_out(scope, topic, actor))
    removed: bool = answer["removed"]
    return removed


def opt_outs(scope: Scope) -> Flow[list[OptOut]]:
    """What is not to be remembered, with who said so and when, the oldest first.

    Args:
        scope: Where to look.
    """
    rows = yield from call("memory_opt_outs", scope_ids(scope))
    return [
        OptOut(row["topic"], row["thread_id"], row["agent_id"], row["by"], datetime.fromisoformat(row["at"]))
        for row in rows
    ]


def changes(scope: Scope, *, limit: int = 100) -> Flow[list[ControlChange]]:
    """Who changed what by opt-outs, ratings and edits of summaries, and when, the newest first.

    Args:
        scope: Where to look.
        limit: The most, up to 500.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= _MOST:
        raise InvalidInputError(f"limit must be a whole number from 1 to {_MOST}.", hint="100 is the default.")
    rows = yield from call("memory_control_changes", {**scope_ids(scope), "p_limit": limit})
    names = ("action", "subject", "before", "thread_id", "agent_id", "changed_by")
    return [
        ControlChange(**{name: row[name] for name in names}, changed_at=datetime.fromisoformat(row["changed_at"]))
        for row in rows
    ]


def rate(
    owner: str | None,
    chunk: Chunk | str,
    *,
    actor: str,
    useful: bool | None = None,
    importance: float | None = None,
) -> Flow[float]:
    """Say how much a chunk matters: recall and promotion go by it, and the same words keep it for good.

    Args:
        owner: The owner; `None` means the access token's subject.
        chunk: The chunk, as it was recalled, or its id.
        actor: Who says so; it is noted with the time.
        useful: Whether it was of use: an importance of 0.9 or 0.1.
        importance: Or its importance itself, from 0 to 1.

    Returns:
        Its importance from now on.

    Raises:
        InvalidInputError: Not exactly one of `useful` and `importance` is given, or that is none.
        NotFoundError: There is no such chunk.
    """
    if isinstance(chunk, Chunk):
        scope, chunk_id = Scope(owner, chunk.agent_id, chunk.thread_id), chunk.id
    else:
        scope, chunk_id = Scope(owner), chunk
    weight = _weight(useful, importance)
    arguments = {**scope_ids(scope), "p_chunk_id": chunk_id, "p_importance": weight, "p_by": check_actor(actor)}
    answer = yield from call("memory_rate_chunk", arguments)
    return float(answer["importance"])


def _edit_segments(
    key: ConversationKey,
    action: Literal["edit", "delete", "regenerate"],
    actor: str,
    *,
    number: int | None = None,
    text: str | None = None,
    include_edited: bool = False,
) -> Flow[int]:
    """What a person does with segments. Returns how many were taken back."""
    answer = yield from call(
        "memory_edit_summary",
        {
            **conversation_ids(key),
            "p_action": action,
            "p_by": check_actor(actor),
            "p_number": number,
            "p_text": text,
            "p_tokens": None if text is None else max(1, count_tokens(text)),
            "p_include_edited": include_edited,
        },
    )
    return int(answer["taken_back"])


def edit_segment(
    key: ConversationKey, number: int, text: str, *, actor: str, redactor: Redactor | None = None
) -> Flow[int]:
    """Write what a segment of the rolling summary says. The next goes on from there.

    What was built on it is taken back and written anew when it is due. Regeneration leaves what a person wrote as
    it is; it goes only with what it was made from, when a message of it or before it is edited or forgotten.

    Args:
        key: The conversation.
        number: The segment, as `summaries` numbers them.
        text: What it says, up to 10,000 characters.
        actor: Who writes it.
        redactor: What takes secrets and personal data out of what is stored.

    Returns:
        How many segments were taken back.

    Raises:
        InvalidInputError: It is no text, is too long, or mentions a topic that is not to be remembered.
        NotFoundError: There is no such conversation or segment.
    """
    words = _segment_text(text, redactor)
    return (yield from _edit_segments(key, "edit", actor, number=number, text=words))


def delete_segment(key: ConversationKey, number: int, *, actor: str) -> Flow[int]:
    """Take a segment back and all that were built on it; they are written anew when that is due.

    What was made from messages that have expired cannot be written anew.

    Args:
        key: The conversation.
        number: The segment, as `summaries` numbers them.
        actor: Who wants that.

    Returns:
        How many segments were taken back.

    Raises:
        NotFoundError: There is no such conversation or segment.
    """
    return (yield from _edit_segments(key, "delete", actor, number=number))


def regenerate_summaries(
    key: ConversationKey,
    policy: SummaryPolicy,
    *,
    actor: str,
    include_edited: bool = False,
    summarizer: str | None = None,
) -> Flow[SummaryResult]:
    """Write the summaries anew from the messages: those after the last that a person wrote.

    Args:
        key: The conversation.
        policy: When and how, with every number given.
        actor: Who wants that.
        include_edited: Whether what a person wrote is written anew as well. What was made from messages that have
            expired stays in any case.
        summarizer: The summarizer's name, which is noted as the author; `None` without one.

    Returns:
        What was written; nothing, if the memory has no model: then they are written when that is due.

    Raises:
        NotFoundError: There is no such conversation.
    """
    yield from _edit_segments(key, "regenerate", actor, include_edited=include_edited)
    if summarizer is None:
        return SummaryResult(-1)
    return (yield from summaries.summarize(key, policy, summarizer=summarizer, respect_backoff=False))


def _weight(useful: bool | None, importance: float | None) -> float:
    """How much a chunk matters, from 0 to 1, by what a person says of it.

    Raises:
        InvalidInputError: Not exactly one of the two is given, or that is none.
    """
    if (useful is None) == (importance is None):
        raise InvalidInputError("How much it matters is not said.", hint="Pass useful=True, or importance=0.9.")
    if useful is not None:
        return USEFUL if useful else USELESS
    if isinstance(importance, bool) or not isinstance(importance, (int, float)) or not 0 <= importance <= 1:
        raise InvalidInputError("importance must be a number from 0 to 1.", hint="Pass importance=0.9, say.")
    return float(importance)


def _segment_text(text: str, redactor: Redactor | None) -> str:
    """What a person writes as a segment, as it is stored.

    Raises:
        InvalidInputError: It is no text, or is too long.
    """
    words = str(redact_value(clean(text).strip(), redactor)) if isinstance(text, str) else ""
    if not words or len(words) > LONGEST_SUMMARY:
        raise InvalidInputError(
            f"A summary is a text of 1 to {LONGEST_SUMMARY:,} characters.", hint="To be rid of it, delete it."
        )
    return words


_MOST: Final = 500


def _topic(topic: str) -> str:
    words = " ".join(clean(topic).split()) if isinstance(topic, str) else ""
    if not words or len(words) > LONGEST_TOPIC:
        raise InvalidInputError(
            f"A topic is a text of 1 to {LONGEST_TOPIC} characters.", hint="Name it in a word or a few."
        )
    return words


def _parse_opt_out(scope: Scope, topic: str | None, actor: str) -> dict[str, Any]:
    words = None if topic is None else _topic(topic)
    return {**scope_ids(scope), "p_topic": words, "p_by": check_actor(actor)}
