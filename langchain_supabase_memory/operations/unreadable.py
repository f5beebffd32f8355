"""Messages that cannot be read: they are recorded, listed, and left out of context packs."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import PermissionDeniedError
from langchain_supabase_memory.language.messages import attribution, codec
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids
from langchain_supabase_memory.operations.pages import PAGE
from langchain_supabase_memory.values import ConversationKey, UnreadableMessage, log_fields

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

_logger = logging.getLogger(__name__)


def quarantine(key: ConversationKey, rows: Sequence[Mapping[str, Any]]) -> Flow[None]:
    """Record messages that cannot be read, each once, and log where each one is.

    Args:
        key: The conversation.
        rows: The result of `codec.undecodable_rows`; if it is empty, the database is not called.
    """
    if not rows:
        return
    try:
        new = yield from call("memory_set_aside", {**conversation_ids(key), "p_rows": list(rows)})
    except PermissionDeniedError:
        if key.is_in_space:  # a member reads it: a server records it
            return
        raise
    reasons = {row["sequence"]: row["reason"] for row in rows}
    for sequence in new:
        _logger.warning(
            "A stored message cannot be read and is set aside (%s): message %d of user %r, agent %r, thread %r",
            reasons[sequence], sequence, key.user_id, key.agent_id, key.thread_id,
            extra={**log_fields(key), "memory_sequence": sequence, "memory_error": reasons[sequence]},
        )  # fmt: skip


def numbered_messages(key: ConversationKey, rows: Sequence[Mapping[str, Any]]) -> Flow[list[tuple[int, BaseMessage]]]:
    """Decode rows with a sequence and a payload into numbered messages, and record those that cannot be read.

    In a space the name of a member's message is what its author is called there.
    """
    messages = codec.from_payloads([row["payload"] for row in rows])
    yield from quarantine(key, codec.undecodable_rows(rows, messages))
    if key.is_in_space:
        named = zip(messages, rows, strict=True)
        messages = [attribution.named(message, row["author_name"]) for message, row in named]
    return [(row["sequence"], message) for row, message in zip(rows, messages, strict=True)]


def unreadable(user_id: str | None, *, limit: int | None = None) -> Flow[list[UnreadableMessage]]:
    """List the messages that cannot be read. They are left out of context packs but stay stored.

    A message becomes readable again when its payload is rewritten, by `append` with the message's id or by SQL.
    Then it is shown, summarized and indexed like any other.

    Args:
        user_id: Only this user's messages; by default the memory's user.
        limit: The maximum number to return; `None` means all.

    Returns:
        Where the messages are, ordered by owner and conversation.

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
