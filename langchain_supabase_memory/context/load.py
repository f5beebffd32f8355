"""The flow behind `context`: one call that reads what the budget needs; a summary first, if the policy asks for it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.context.fit import BEYOND, TOO_MANY, History, fit
from langchain_supabase_memory.context.meters import meter
from langchain_supabase_memory.context.pack import ContextPack
from langchain_supabase_memory.conversations import kept, named
from langchain_supabase_memory.flow import Flow, call
from langchain_supabase_memory.messages import codec, content, fence
from langchain_supabase_memory.messages.blocks import Entry
from langchain_supabase_memory.summaries import segment, shortened, summarise

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.models import ConversationKey, Turn
    from langchain_supabase_memory.settings import ContextBudget, Retention, SummaryPolicy

VIA: Final = "graph"
"""What `metadata` says of messages that came from a graph's state, whose branches supersede one another."""

SUPERSEDED: Final = "not on this branch of the graph"

_LIMIT: Final = 1000
"""The most messages that one pack reads."""


def context(
    key: ConversationKey,
    *,
    budget: ContextBudget,
    policy: SummaryPolicy,
    current: Sequence[BaseMessage] = (),
    branch: Sequence[BaseMessage] | None = None,
    waiting: Sequence[BaseMessage] = (),
    model: str | None = None,
    retention: Retention | None = None,
) -> Flow[ContextPack]:
    """What the next prompt receives, in one round trip; with more, if a summary has to be made first.

    Args:
        key: The conversation; one that does not exist gives an empty pack.
        budget: The most that the pack may hold.
        policy: Whether and when a summary is made first.
        current: The current turn: the user's message, and what followed it so far. It is not part of the history,
            whether it is stored already or not, and the user's message is never cut.
        branch: The history as a graph's state has it. Messages that came from a graph and are not on it, because the
            graph was forked or a message removed, are left out.
        waiting: Messages that could not be stored yet; they are shown last.
        model: The name of the summary model that is at hand; `None` if there is none.
        retention: What is kept; what is beyond it is removed first.

    Returns:
        The pack.

    Raises:
        SupabaseMemoryError: The database refused or could not be reached.
    """
    within = policy.within(budget)
    pack = yield from _packed(key, budget, within, current, branch, waiting, retention)
    if model is None or policy.mode != "inline" or not pack.due:
        return pack
    done = yield from summarise(key, within, model=model, most_segments=policy.inline_segments)
    if done.segments or done.overtaken:
        pack = yield from _packed(key, budget, within, current, branch, waiting, retention)
    return replace(pack, summary_error=done.failed) if done.failed else pack


def referring(turn: Turn, budget: ContextBudget) -> BaseMessage:
    """A turn that the user points at, as a fenced message to stand before theirs; at most a quarter of the budget.

    Args:
        turn: The turn.
        budget: The budget of the pack that it goes with.
    """
    room = max(budget.about_characters // 8, 1)
    text = f"User: {shortened(turn.user_query, room)}\nAssistant: {shortened(turn.ai_response, room)}"
    said = fence.element("referenced_turn", text, number=turn.number, at=f"{turn.created_at:%Y-%m-%d %H:%M}")
    return fence.message(fence.fenced([said]), REFERENCE_ID)


REFERENCE_ID: Final = "lc_supabase_memory_reference"
"""The id of the message that carries a turn that the user points at."""


def _packed(
    key: ConversationKey,
    budget: ContextBudget,
    policy: SummaryPolicy,
    current: Sequence[BaseMessage],
    branch: Sequence[BaseMessage] | None,
    waiting: Sequence[BaseMessage],
    retention: Retention | None,
) -> Flow[ContextPack]:
    # The current turn may be stored already and is not shown from there: it must not use up what is read.
    characters = budget.about_characters * (1 if budget.tokens is None else 2) + sum(map(content.characters, current))
    wanted = _LIMIT if budget.max_messages is None else min(_LIMIT, budget.max_messages + 1 + len(current))
    arguments = {**named(key), "p_characters": characters, "p_messages": wanted, "p_retention": kept(retention)}
    document: Mapping[str, Any] = (yield from call("memory_context", arguments)) or {}
    fitted = fit(_history(document, current, branch, waiting), meter(budget), budget.max_messages)
    pack = ContextPack(
        key=key,
        budget=budget,
        fitted=fitted,
        full_messages=document.get("message_count", 0),
        full_characters=document.get("total_characters", 0),
        full_tokens=document.get("total_tokens", 0),
        through_sequence=document.get("through_sequence", -1),
        summary_error=document.get("summary_error"),
    )
    return replace(pack, due=_is_due(document, pack, policy))


def _history(
    document: Mapping[str, Any],
    current: Sequence[BaseMessage],
    branch: Sequence[BaseMessage] | None,
    waiting: Sequence[BaseMessage],
) -> History:
    rows = document.get("messages", [])
    messages = codec.from_payloads([row["payload"] for row in rows])
    turn = {message.id for message in current if message.id is not None}
    stored = {message.id: row["sequence"] for row, message in zip(rows, messages, strict=True)}
    on_branch = {message.id: message for message in branch or ()}
    first = min((stored[each] for each in on_branch if each in stored), default=None)

    entries: list[Entry] = []
    superseded: dict[int, str] = {}
    for row, message in zip(rows, messages, strict=True):
        sequence = row["sequence"]
        if message.id in turn:
            continue
        held = on_branch.get(message.id)
        if held is None and branch is not None and row["via"] == VIA and first is not None and sequence >= first:
            superseded[sequence] = SUPERSEDED
            continue
        entries.append(Entry(held if held is not None and content.was_said(held) else message, (sequence,)))
    entries += [Entry(message) for message in waiting if message.id not in stored and message.id not in turn]

    segments = [segment(row) for row in document.get("segments", [])]
    whole = not segments or (bool(rows) and rows[0]["sequence"] <= segments[0].to_sequence)
    asked = document.get("asked")
    return History(
        entries=entries,
        segments=[*([None] if whole else []), *segments],
        unread_from=document.get("unread_from"),
        asked=None if asked is None else Entry(codec.from_payload(asked["payload"]), (asked["sequence"],)),
        current=[Entry(message, (stored[message.id],) if message.id in stored else ()) for message in current],
        superseded=superseded,
    )


def _is_due(document: Mapping[str, Any], pack: ContextPack, policy: SummaryPolicy) -> bool:
    if not document or document["summary_waiting"]:
        return False
    beyond = (
        (policy.characters, document["total_characters"] - document["summarised_characters"]),
        (policy.tokens, document["total_tokens"] - document["summarised_tokens"]),
        (policy.messages, document["next_sequence"] - 1 - document["through_sequence"]),
    )
    over = any(most is not None and most < held for most, held in beyond)
    return over or any(why in (BEYOND, TOO_MANY) for _, _, why in pack.omitted)
