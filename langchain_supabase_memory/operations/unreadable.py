"""Messages that cannot be read: noted, listed, left out of packs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids
from langchain_supabase_memory.operations.pages import PAGE
from langchain_supabase_memory.values import ConversationKey, UnreadableMessage, log_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

_logger = logging.getLogger(__name__)


def quarantine(key: ConversationKey, rows: Sequence[Mapping[str, Any]]) -> Flow[None]:
    """Note messages that cannot be read, each once, with a line in the log that says where it is.

    Args:
        key: The conversation.
        rows: What `codec.strange` found; nothing is asked where that is nothing.
    """
    if not rows:
        return
    new = yield from call("memory_set_aside", {**conversation_ids(key), "p_rows": list(rows)})
    reasons = {row["sequence"]: row["reason"] for row in rows}
    for sequence in new:
        _logger.warning(
            "A stored message cannot be read and is set aside (%s): message %d of user %r, agent %r, thread %r",
            reasons[sequence], sequence, key.user_id, key.agent_id, key.thread_id,
            extra={**log_fields(key), "memory_sequence": sequence, "memory_error": reasons[sequence]},
        )  # fmt: skip


def numbered_messages(key: ConversationKey, rows: Sequence[Mapping[str, Any]]) -> Flow[list[tuple[int, BaseMessage]]]:
    """Rows with a sequence and a payload as messages, each with its number; those that cannot be read are noted."""
    messages = codec.from_payloads([row["payload"] for row in rows])
    yield from quarantine(key, codec.undecodable_rows(rows, messages))
    return [(row["sequence"], message) for row, message in zip(rows, messages, strict=True)]


def unreadable(user_id: str | None, *, limit: int | None = None) -> Flow[list[UnreadableMessage]]:
    """The messages that cannot be read and are set aside: each is left out of packs, and stays.

    A payload that is written anew, by `append` with the message's id or by SQL, gives it back: it is shown,
    summarized and indexed like any other.

    Args:
        user_id: Only this user's; the memory's by default.
        limit: The most to return; `None` means all.

    Returns:
        Where they are, in the order of owners and conversations.

    Raises:
        InvalidInputError: `limit` is negative.
    """
    check_limit("limit", limit)
    found: list[UnreadableMessage] = []
    after: Mapping[str, Any] | None = None
    names = UnreadableMessage.__dataclass_fields__
    while limit is None or len(found) < limit:
        wanted = PAGE if limit is None else min(PAGE, limit - len(found))
        arguments = {"p_user_id": user_id, "p_limit": wanted, "p_after": after}
        page = yield from call("memory_unreadable", arguments)
        found += [UnreadableMessage(**{name: row[name] for name in names}) for row in page]
        if len(page) < wanted:
            break
        after = page[-1]
    return found
