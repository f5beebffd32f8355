"""User overrides: opt-outs, ratings of chunks, edited summaries.

Each change records who made it and when. Changes to boards are in `boards.editing`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.checks import as_uuid, boolean
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.operations import summaries
from langchain_supabase_memory.operations.arguments import check_actor, conversation_ids, scope_ids
from langchain_supabase_memory.operations.boards.editing import LONGEST_SUMMARY
from langchain_supabase_memory.operations.rows import value_of
from langchain_supabase_memory.values import Chunk, Scope, SummaryResult

if TYPE_CHECKING:
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey

USEFUL: Final = 0.9
"""The importance of a chunk rated as useful."""

USELESS: Final = 0.1
"""The importance of a chunk rated as not useful."""

UNDO: Final = timedelta(minutes=1)
"""How long opting in undoes an opt-out; the database decides by `memory.opt_out_undos.expires_at`."""

LONGEST_TOPIC: Final = 200
"""The maximum number of characters of an opted-out topic."""


@dataclass(frozen=True)
class OptOut:
    """An opt-out.

    Attributes:
        topic: The topic; `None` for a whole conversation.
        thread_id: The conversation; `None` for all of the user's conversations.
        agent_id: Its agent.
        actor: Who opted out.
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
        action: `opt_out`, `opt_in`, `rate`, `edit_summary`, `delete_summary`, `regenerate_summary` or `edit_topic`.
        subject: The topic, the id of a chunk or of a found topic, or the summary's number; `None` for a whole
            conversation.
        before: The text before the change; `None` if there was none, or if it is gone since.
        thread_id: The conversation; `None` for all of the user's conversations.
        agent_id: Its agent.
        changed_by: Who did it.
        changed_at: When.
    """

    action: Literal["opt_out", "opt_in", "rate", "edit_summary", "delete_summary", "regenerate_summary", "edit_topic"]
    subject: str | None = field(repr=False)
    before: str | None = field(repr=False)
    thread_id: str | None
    agent_id: str | None
    changed_by: str
    changed_at: datetime


def opt_out(scope: Scope, topic: str | None = None, *, actor: str) -> Flow[bool]:
    """Stop remembering a conversation, or a topic in it or in all current and future conversations of the user.

    Opting out of a conversation retains its messages, because the chat needs them, and deletes everything derived
    from it in the same transaction. Nothing new is derived: no chunk, summary or board. Board items that a person
    or the application wrote, pinned, rated or deleted stay until they delete them; an edited segment of the summary
    is deleted, because it stands for messages. What was promoted to long-term memory is forgotten there by the next
    `forget_source`. The conversation need not exist yet. For a minute `opt_in` undoes the opt-out; later it derives
    the rest again.

    Text that mentions an opted-out topic is not indexed, written to a board or left in a summary; what already
    exists is deleted. A topic is one word, or several adjacent words. Matching ignores case, accents and
    punctuation, and endings in English and in the conversation's language ("divorce" also matches "divorced", but
    "health" does not match "healthy" or "hospital": name each). In scripts without spaces, and in Korean, the
    characters are searched for. The messages stay. The summarizer is told to leave the topic out; sentences that
    mention it anyway are removed, but a paraphrase is left to the summarizer.

    Args:
        scope: The conversations that the opt-out covers.
        topic: The topic, up to 200 characters; `None` for the conversation itself.
        actor: Who opts out; recorded with the time.

    Returns:
        Whether the opt-out is new.

    Raises:
        InvalidInputError: The topic has no letters, or neither a topic nor a conversation is named.
    """
    answer = yield from call("memory_opt_out", _parse_opt_out(scope, topic, actor))
    is_new: bool = answer["is_new"]
    return is_new


def opt_in(scope: Scope, topic: str | None = None, *, actor: str) -> Flow[bool]:
    """Undo an `opt_out` that had the same arguments.

    Within a minute, summaries, the board, ratings and the title are restored, and chunks are indexed again. What
    was written in that minute stays. If messages changed or were deleted in that minute, and at any later time, the
    conversation becomes due again from its beginning. For a topic, unindexed messages are indexed again, and
    summaries and boards stay as they are until they are regenerated.

    Args:
        scope: The conversations that the opt-out covers.
        topic: The topic; `None` for the conversation itself.
        actor: Who opts in; recorded with the time.

    Returns:
        Whether there was an opt-out.
    """
    answer = yield from call("memory_opt_in", _parse_opt_out(scope, topic, actor))
    removed: bool = answer["removed"]
    return removed


def opt_outs(scope: Scope) -> Flow[list[OptOut]]:
    """List the opt-outs, with who made each and when, oldest first.

    Args:
        scope: The conversations to look at.
    """
    rows = yield from call("memory_opt_outs", scope_ids(scope))
    return [value_of(OptOut, row, actor=row["by"]) for row in rows]


def changes(scope: Scope, *, limit: int = 100) -> Flow[list[ControlChange]]:
    """List the changes by opt-outs, ratings and edits of summaries, with who made each and when, newest first.

    Args:
        scope: The conversations to look at.
        limit: The maximum number of changes, up to 500.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= _MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {_MAX_LIMIT}.", hint="100 is the default.")
    rows = yield from call("memory_control_changes", {**scope_ids(scope), "p_limit": limit})
    return [value_of(ControlChange, row) for row in rows]


def rate(
    owner: str | None,
    chunk: Chunk | str,
    *,
    actor: str,
    useful: bool | None = None,
    importance: float | None = None,
) -> Flow[float]:
    """Rate how much a chunk matters. Recall uses the rating, and chunks with the same text keep it.

    Args:
        owner: The owner; `None` means the access token's subject.
        chunk: A recalled chunk, or its id.
        actor: Who rates it; recorded with the time.
        useful: Whether it was useful: sets an importance of 0.9 or 0.1.
        importance: Or the importance itself, from 0 to 1.

    Returns:
        The new importance.

    Raises:
        InvalidInputError: Not exactly one of `useful` and `importance` is given, or the value is not valid.
        NotFoundError: There is no such chunk.
    """
    if isinstance(chunk, Chunk):
        scope, chunk_id = Scope(owner, chunk.agent_id, chunk.thread_id), chunk.id
    else:
        scope, chunk_id = Scope(owner), as_uuid("chunk", chunk)
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
    """Edit, delete or regenerate segments for a person. Returns how many segments were deleted."""
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
    """Replace the text of a segment of the rolling summary. The next segment continues from it.

    Later segments are deleted and written again when they are due. Regeneration does not change an edited segment;
    it is only deleted when a message that it covers, or an earlier one, is edited or forgotten.

    Args:
        key: The conversation.
        number: The segment's number, as in `summaries`.
        text: The new text, up to 10,000 characters.
        actor: Who edits it.
        redactor: Removes secrets and personal data before storage.

    Returns:
        How many segments were deleted.

    Raises:
        InvalidInputError: The text is not a string, is too long, or mentions an opted-out topic.
        NotFoundError: There is no such conversation or segment.
    """
    words = _segment_text(text, redactor)
    return (yield from _edit_segments(key, "edit", actor, number=number, text=words))


def delete_segment(key: ConversationKey, number: int, *, actor: str) -> Flow[int]:
    """Delete a segment and all that were built on it; they are written again when due.

    Segments created from expired messages cannot be written again.

    Args:
        key: The conversation.
        number: The segment's number, as in `summaries`.
        actor: Who deletes it.

    Returns:
        How many segments were deleted.

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
    """Regenerate the summaries from the messages after the last segment that a person wrote.

    Args:
        key: The conversation.
        policy: The summary policy, with every number set.
        actor: Who requests it.
        include_edited: Whether to regenerate edited segments as well. Segments created from expired messages always
            stay.
        summarizer: The summarizer's name, recorded as the author; `None` without one.

    Returns:
        The result; empty if the memory has no model: then the summaries are written when they are due.

    Raises:
        NotFoundError: There is no such conversation.
    """
    yield from _edit_segments(key, "regenerate", actor, include_edited=include_edited)
    if summarizer is None:
        return SummaryResult(-1)
    return (yield from summaries.summarize(key, policy, summarizer=summarizer, respect_backoff=False))


def _weight(useful: bool | None, importance: float | None) -> float:
    """Return the importance that a rating gives a chunk, from 0 to 1.

    Raises:
        InvalidInputError: Not exactly one of the two is given, or the value is not valid.
    """
    if (useful is None) == (importance is None):
        raise InvalidInputError(
            "Pass exactly one of useful and importance.", hint="Pass useful=True, or importance=0.9."
        )
    if useful is not None:
        boolean("useful", useful)
        return USEFUL if useful else USELESS
    if isinstance(importance, bool) or not isinstance(importance, (int, float)) or not 0 <= importance <= 1:
        raise InvalidInputError("importance must be a number from 0 to 1.", hint="Pass importance=0.9, say.")
    return float(importance)


def _segment_text(text: str, redactor: Redactor | None) -> str:
    """Return the text of an edited segment as it is stored.

    Raises:
        InvalidInputError: It is not a string, or is too long.
    """
    words = str(redact_value(clean(text).strip(), redactor)) if isinstance(text, str) else ""
    if not words or len(words) > LONGEST_SUMMARY:
        raise InvalidInputError(
            f"A summary is a text of 1 to {LONGEST_SUMMARY:,} characters.", hint="To remove the summary, delete it."
        )
    return words


_MAX_LIMIT: Final = 500


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
