"""Messages on their way: what is new behind what waits in the outbox, in one call, so that the order holds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError, TooLargeError
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
"""What is refused for what it holds, and will be the next time too."""


def pending(memory: Services, key: ConversationKey) -> list[BaseMessage]:
    """The messages of a conversation that could not be stored yet."""
    return [message for message, _ in memory.outbox.pending(key)]


def flush(services: Services) -> Flow[int]:
    """Store what earlier writes of histories left in the outbox.

    Args:
        services: The memory.

    Returns:
        How many messages are still waiting, which is 0 unless an error is raised.

    Raises:
        SupabaseMemoryError: The database still refuses; everything is kept.
    """
    refusals = []
    for key in services.outbox.conversations():
        try:
            yield from flush_and_append(services, key, [])
        except _REFUSALS as refusal:  # of one conversation, for which the others need not wait
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
    """Store messages behind those that wait for the same conversation, in one call, so that the order holds.

    Where the database refuses what one of them holds, those that wait are stored one by one: the one that is
    refused waits on, and holds nothing else back.

    Args:
        memory: The memory, whose outbox it is.
        key: The conversation.
        messages: What is new; it may be nothing.
        metadata: What to store beside each of them.
        replace: Whether a message that is there already with other content is replaced.
        retention: What is kept; the memory's by default.
        branch: The graph's state that they come from; see `conversations.append`.
        manifest: What stood in the prompt that they answer; what waits in the outbox waits without it.

    Raises:
        SupabaseMemoryError: What is new was not stored, and is not kept here; what waited and was not stored
            waits on.
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
                created_at=[time for _, time in batch],
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
            # In order, in as many calls as the limits ask for; the last says what the graph's state holds.
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
