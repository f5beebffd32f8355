"""People in control: what is not to be remembered, how much a chunk matters, summaries that a person edits.

Who changes what, and when, is noted with each change. What they change of boards is in `boards.editing`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.flow import Flow, call
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.language.messages.sanitizer import clean
from langchain_supabase_memory.language.tokens import count_tokens
from langchain_supabase_memory.operations import summaries
from langchain_supabase_memory.operations.arguments import check_actor, conversation_ids, scope_ids
from langchain_supabase_memory.operations.boards.editing import LONGEST_SUMMARY
from langchain_supabase_memory.values import SummaryResult

if TYPE_CHECKING:
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.settings import SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey, Scope

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


def opt_out(scope: Scope, topic: str | None, actor: str) -> Flow[bool]:
    """Remember nothing of a conversation, or of a topic in it or in all. Returns whether that is new."""
    answer = yield from call("memory_opt_out", _parse_opt_out(scope, topic, actor))
    is_new: bool = answer["is_new"]
    return is_new


def opt_in(scope: Scope, topic: str | None, actor: str) -> Flow[bool]:
    """Remember it again. Returns whether it had not been remembered."""
    answer = yield from call("memory_opt_in", _parse_opt_out(scope, topic, actor))
    removed: bool = answer["removed"]
    return removed


def opt_outs(scope: Scope) -> Flow[list[OptOut]]:
    """What is not to be remembered, the oldest first."""
    rows = yield from call("memory_opt_outs", scope_ids(scope))
    return [OptOut(**{**row, "at": datetime.fromisoformat(row["at"])}) for row in rows]


def changes(scope: Scope, limit: int) -> Flow[list[ControlChange]]:
    """What was changed, the newest first."""
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= _MOST:
        raise InvalidInputError(f"limit must be a whole number from 1 to {_MOST}.", hint="100 is the default.")
    rows = yield from call("memory_control_changes", {**scope_ids(scope), "p_limit": limit})
    names = ("action", "subject", "before", "thread_id", "agent_id", "changed_by")
    return [
        ControlChange(**{name: row[name] for name in names}, changed_at=datetime.fromisoformat(row["changed_at"]))
        for row in rows
    ]


def rate(scope: Scope, chunk_id: str, importance: float, actor: str) -> Flow[float]:
    """Say how much a chunk matters. Returns its importance from now on."""
    arguments = {**scope_ids(scope), "p_chunk_id": chunk_id, "p_importance": importance, "p_by": check_actor(actor)}
    answer = yield from call("memory_rate_chunk", arguments)
    return float(answer["importance"])


def edit_summary(
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


def regenerate_summaries(
    key: ConversationKey, actor: str, *, include_edited: bool, policy: SummaryPolicy, model: str | None
) -> Flow[SummaryResult]:
    """Take the summaries back and write them anew; without a model they are written when that is due."""
    yield from edit_summary(key, "regenerate", actor, include_edited=include_edited)
    if model is None:
        return SummaryResult(-1)
    return (yield from summaries.summarize(key, policy, model=model, respect_backoff=False))


def weight(useful: bool | None, importance: float | None) -> float:
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


def summary_text(text: str, redactor: Redactor | None) -> str:
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
