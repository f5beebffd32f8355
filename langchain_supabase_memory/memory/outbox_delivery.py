"""Delivery of messages: new ones are stored after those in the outbox, in one call, so that the order holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError, TooLargeError
from langchain_supabase_memory.memory.outbox import due_times
from langchain_supabase_memory.memory.pending_manifests import sampled_manifest
from langchain_supabase_memory.operations import conversations

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.outbox import PendingMessages
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.operations.branch import BranchUpdate
    from langchain_supabase_memory.operations.manifests.encoding import Lists
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey

_REFUSALS: Final = (InvalidInputError, TooLargeError)
"""Errors caused by a message's content, which a retry would repeat."""


def pending(memory: Services, key: ConversationKey) -> list[BaseMessage]:
    """Return the messages of a conversation in the outbox."""
    return [message for message, _ in memory.outbox.pending(key)]


def flush(services: Services) -> Flow[int]:
    """Finish what was put off: work behind answers, and messages that failed writes left in the outbox.

    Before a process pauses or ends, call it to have nothing due. It waits a minute at most for the work.

    Args:
        services: The memory.

    Returns:
        How many messages are still in the outbox, which is 0 unless an error is raised.

    Raises:
        SupabaseMemoryError: The database still refuses; everything stays in the outbox.
    """
    yield services.drained()
    refusals = []
    for key in services.outbox.conversations():
        try:
            yield from flush_and_append(services, key, [])
        except _REFUSALS as refusal:  # only one conversation is affected, so continue with the others
            refusals.append(refusal)
    if refusals:
        raise refusals[0]
    return len(services.outbox)


def flush_and_append(
    memory: Services,
    key: ConversationKey,
    messages: Sequence[BaseMessage],
    *,
    metadata: Mapping[str, Any] | None = None,
    replace: bool = True,
    retention: Retention | None = None,
    branch: BranchUpdate | None = None,
    manifest: Lists | None = None,
) -> Flow[None]:
    """Store messages after those in the outbox for the same conversation, in one call, so that the order holds.

    If the database rejects one message's content, the outbox messages are stored one at a time: the rejected one
    stays in the outbox and does not block the others.

    Args:
        memory: The memory with the outbox.
        key: The conversation.
        messages: The new messages; may be empty.
        metadata: The metadata to store with each message.
        replace: Whether to replace a stored message that has other content.
        retention: The retention to apply; the memory's by default.
        branch: The graph state that the messages come from; see `conversations.append`.
        manifest: The manifest of the prompt that they answer; messages in the outbox have none.

    Raises:
        SupabaseMemoryError: The new messages were not stored and are not put into the outbox; undelivered outbox
            messages stay in it.
    """

    def stored(
        batch: Sequence[PendingMessages | tuple[BaseMessage, None]],
        branch: BranchUpdate | None = None,
        manifest: Lists | None = None,
    ) -> Flow[None]:
        said = [message for message, _ in batch]
        try:
            yield from conversations.append(
                key,
                said,
                created_at=due_times(batch),
                metadata=metadata,
                replace=replace,
                retention=retention or memory.settings.retention,
                redactor=memory.redactor,
                branch=branch,
                manifest=sampled_manifest(memory.config.manifests, key, manifest, said),
            )
        except TooLargeError:
            if len(batch) < 2:
                raise
            # Split in order into as many calls as the limits require; the last one carries the graph's state.
            half = len(batch) // 2
            yield from stored(batch[:half])
            yield from stored(batch[half:], branch, manifest)
        else:
            memory.outbox.delivered(key, said)

    held = memory.outbox.pending(key)
    if branch is not None:
        branch.document["waiting"] = len(held)
    fresh = [(message, None) for message in messages]
    try:
        return (yield from stored([*held, *fresh], branch, manifest))
    except _REFUSALS as refusal:
        if not held or len(held) + len(fresh) == 1:
            raise
        refused: SupabaseMemoryError = refusal
    still_refused = False
    for one in held:
        try:
            yield from stored([one])
        except _REFUSALS as refusal:
            refused, still_refused = refusal, True
    if fresh or branch is not None:
        yield from stored(fresh, branch, manifest)
    elif still_refused:
        raise refused
