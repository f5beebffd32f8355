"""Messages of a conversation: stored, and deleted also where they wait in the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.memory import context_defaults
from langchain_supabase_memory.operations import conversations, turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from datetime import datetime

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.language.messages.codec import MessagesLike
    from langchain_supabase_memory.memory.services import Services
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import AppendResult, ConversationKey, Receipt


def append(
    services: Services,
    key: ConversationKey,
    messages: MessagesLike,
    *,
    metadata: Mapping[str, object] | None = None,
    created_at: datetime | Sequence[datetime | None] | None = None,
    retention: Retention | None = None,
    idempotency_key: str | None = None,
    pack: ContextPack | None = None,
) -> Flow[AppendResult]:
    """Store messages: once each, in order, all or none, in one round trip.

    What nobody said (a human or system message that carries LangChain's `lc_source`, such as a summary; anything
    that this package put into a prompt) is not stored. Nor is what has expired or was forgotten: a retry does not
    bring it back. What of a message is larger than the database takes (4 MiB by default) is left out, and named
    where it was: media first, then what a tool keeps for the application, then the middle of the longest text.

    Args:
        services: The memory.
        key: The conversation.
        messages: What LangChain takes for messages: a list of messages, texts (the user's), pairs such as
            `("assistant", "Hello")` or dictionaries with `role` and `content`; or one of them. A message without
            an id gets one, on the object itself, so that a retry is a retry. Of several with one id the last is
            stored, at the place of the first. A message that is stored already with other content is replaced.
        metadata: What to store beside each of them: a JSON object.
        created_at: When they were said, with a time zone: one time for all, or one for each. The database's clock
            by default.
        retention: What is kept; what is beyond it is removed in the same transaction. The memory's by default.
        idempotency_key: What names this call, such as a request's id: a repeat of it by another process, with
            messages that have no ids, stores nothing twice. 1 to 512 bytes.
        pack: What these messages answer: what stood in it is kept with them, in numbers, for `manifests`. As the
            memory's `manifests` says; nothing is refused for it.

    Returns:
        The number of each message, how many were new, and which were replaced because their content differed.

    Raises:
        InvalidInputError: Something passed is no message, a time is naive, or the pack is of another conversation;
            nothing was stored.
        TooLargeError: All messages together are more than one call takes; nothing was stored.
        ConfigurationError: A rule of the redactor failed; nothing was stored.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    checked = codec.as_messages(messages)
    codec.separate_ids(checked)
    return (
        yield from conversations.append(
            key,
            checked,
            metadata=metadata,
            created_at=created_at,
            retention=retention or services.settings.retention,
            redactor=services.redactor,
            idempotency_key=idempotency_key,
            manifest=None
            if pack is None
            else context_defaults.manifest_of(services, key, pack, checked, idempotency_key),
        )
    )


def add_turn(
    services: Services,
    key: ConversationKey,
    query: str,
    response: str,
    *,
    retention: Retention | None = None,
    idempotency_key: str | None = None,
    pack: ContextPack | None = None,
) -> Flow[AppendResult]:
    """Store a complete turn, a user's query and its answer, in one round trip.

    Args:
        services: The memory.
        key: The conversation.
        query: What the user said.
        response: The final answer.
        retention: What is kept; the memory's by default.
        idempotency_key: What names this call, such as a request's id: the same turn is stored once however often
            that is tried.
        pack: What the answer was made from, as for `append`.

    Returns:
        As for `append`.

    Raises:
        InvalidInputError: One of them is no text, blank, or longer than a million characters.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    messages = turns.messages_of(query, response)
    return (yield from append(services, key, messages, retention=retention, idempotency_key=idempotency_key, pack=pack))


def forget(services: Services, key: ConversationKey, *, dry_run: bool = False) -> Flow[Receipt]:
    """Delete the conversation with everything derived from it.

    Args:
        services: The memory.
        key: The conversation.
        dry_run: Only say what would go.

    Returns:
        What went.
    """
    receipt = yield from conversations.forget(key, dry_run=dry_run)
    _drop(services, [key], dry_run=dry_run)
    return receipt


def forget_message(
    services: Services, key: ConversationKey, message_id: str, *, dry_run: bool = False
) -> Flow[Receipt]:
    """Delete one message, and the summaries that were made from it. The others keep their numbers.

    A message of this id is not stored again in the conversation: a graph that still holds it does not bring it
    back.

    Args:
        services: The memory.
        key: The conversation.
        message_id: The LangChain message's id.
        dry_run: Only say what would go.

    Returns:
        What went; no message, if there was none of this id.
    """
    receipt = yield from conversations.forget_message(key, message_id, dry_run=dry_run)
    if not dry_run:
        services.outbox.forget(key, message_id)
    return receipt


def forget_user(
    services: Services, owner: str | None, *, agent_id: str | None = None, dry_run: bool = False
) -> Flow[Receipt]:
    """Delete all of a user: conversations with all agents, everything derived from them, the items of the store.

    Args:
        services: The memory.
        owner: The owner; `None` means the access token's subject.
        agent_id: Only the conversations with this agent, with everything derived from them; `None` means all, and
            the items of the store.
        dry_run: Only say what would go.

    Returns:
        What went.

    Raises:
        InvalidInputError: Nobody is named.
    """
    receipt = yield from conversations.forget_user(owner, agent_id=agent_id, dry_run=dry_run)
    keys = services.outbox.conversations()
    _drop(services, [key for key in keys if key.user_id == owner and agent_id in (None, key.agent_id)], dry_run=dry_run)
    return receipt


def forget_expired(
    services: Services,
    user_id: str | None,
    *,
    agent_id: str | None = None,
    thread_id: str | None = None,
    retention: Retention | None = None,
    dry_run: bool = False,
) -> Flow[Receipt]:
    """Remove what retention does not keep, and chunks that have expired, in all conversations the memory may see.

    Call it from a scheduled task.

    Args:
        services: The memory.
        user_id: Only this user's; by default the memory's user, or everybody's that the memory may see.
        agent_id: Only those with this agent; `None` means all.
        thread_id: Only this thread; `None` means all.
        retention: What is kept; the memory's by default. Without any, only expired chunks go.
        dry_run: Only say what would go: it is done, counted and taken back, one conversation after the other.

    Returns:
        What went: the conversations that lost messages, how many messages, summaries and chunks.
    """
    return (
        yield from conversations.forget_expired(
            retention or services.settings.retention,
            user_id=user_id,
            agent_id=agent_id,
            thread_id=thread_id,
            dry_run=dry_run,
        )
    )


def _drop(services: Services, keys: Iterable[ConversationKey], *, dry_run: bool) -> None:
    """What waits for a conversation that was forgotten goes too; only then, or a failure would lose it."""
    for key in () if dry_run else keys:
        services.outbox.drop(key)
