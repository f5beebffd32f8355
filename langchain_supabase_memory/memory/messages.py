"""Store and delete messages of a conversation, including those in the outbox."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.memory import context_defaults
from langchain_supabase_memory.operations import conversations, turns

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
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
    """Store messages in order, each once, all or none, in one round trip.

    Messages that nobody wrote (a human or system message with LangChain's `lc_source`, such as a summary, or
    anything that this package added to a prompt) are not stored. Expired and forgotten messages are not stored
    either: a retry does not bring them back. Parts of a message that exceed the database's limit (4 MiB by default)
    are removed, and a note names them in place: media first, then the artifact of a tool, then the middle of the
    longest text.

    Args:
        services: The memory.
        key: The conversation.
        messages: Anything that LangChain accepts as messages: a list of messages, strings (the user's), pairs such
            as `("assistant", "Hello")` or dictionaries with `role` and `content`; or a single one. A message
            without an id gets one, on the object itself, so that a retry is recognized. Of several messages with
            the same id, the last one is stored, at the position of the first. A stored message with other content
            is replaced.
        metadata: Metadata to store with each message: a JSON object.
        created_at: The messages' times, with a time zone: one for all, or one for each. The database's clock by
            default.
        retention: The retention; older messages are deleted in the same transaction. The memory's by default.
        idempotency_key: Identifies this call, such as a request's id: if another process repeats it with messages
            that have no ids, nothing is stored twice. 1 to 512 bytes.
        pack: The context pack that these messages answer: its manifest is stored with them, in numbers, for
            `manifests`, as the memory's `manifests` policy says; it never causes an error.

    Returns:
        The number of each message, how many were new, and which were replaced because their content differed.

    Raises:
        InvalidInputError: An argument is not a message, a time is naive, or the pack belongs to another
            conversation; nothing was stored.
        TooLargeError: All messages together exceed the limit of one call; nothing was stored.
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
        query: The user's message.
        response: The final answer.
        retention: The retention to apply; the memory's by default.
        idempotency_key: Identifies this call, such as a request's id: the turn is stored once, however often the
            call is repeated.
        pack: The context pack behind the answer, as for `append`.

    Returns:
        As for `append`.

    Raises:
        InvalidInputError: One of them is not a string, is blank, or is longer than a million characters.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    messages = turns.messages_of(query, response)
    return (yield from append(services, key, messages, retention=retention, idempotency_key=idempotency_key, pack=pack))


def forget(services: Services, key: ConversationKey, *, dry_run: bool = False) -> Flow[Receipt]:
    """Delete the conversation with everything derived from it.

    Args:
        services: The memory.
        key: The conversation.
        dry_run: Only report what would be deleted.

    Returns:
        What was deleted.
    """
    receipt = yield from conversations.forget(key, dry_run=dry_run)
    if not dry_run:  # only afterwards, because a failure would lose them
        services.outbox.drop(key)
    return receipt


def forget_message(
    services: Services, key: ConversationKey, message_id: str, *, dry_run: bool = False
) -> Flow[Receipt]:
    """Delete one message, and the summaries created from it. Other messages keep their numbers.

    No message with this id is stored in the conversation again: a graph that still holds it does not bring it back.

    Args:
        services: The memory.
        key: The conversation.
        message_id: The LangChain message's id.
        dry_run: Only report what would be deleted.

    Returns:
        What was deleted; no message, if there was none with this id.
    """
    receipt = yield from conversations.forget_message(key, message_id, dry_run=dry_run)
    if not dry_run:
        services.outbox.forget(key, message_id)
    return receipt


def forget_user(
    services: Services, owner: str | None, *, agent_id: str | None = None, dry_run: bool = False
) -> Flow[Receipt]:
    """Delete all data of a user: conversations with all agents, everything derived from them, and store items.

    Args:
        services: The memory.
        owner: The owner; `None` means the access token's subject.
        agent_id: Only the conversations with this agent, with everything derived from them; `None` means all, and
            the items of the store.
        dry_run: Only report what would be deleted.

    Returns:
        What was deleted.

    Raises:
        InvalidInputError: There is no owner.
    """
    receipt = yield from conversations.forget_user(owner, agent_id=agent_id, dry_run=dry_run)
    if not dry_run:  # only afterwards, because a failure would lose them
        services.outbox.drop_user(owner, agent_id)
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
    """Delete what has expired in all conversations that the memory may access.

    That is messages beyond the retention, expired chunks, and private conversations that are a day old.
    Call it from a scheduled task.

    Args:
        services: The memory.
        user_id: Only this user's conversations; by default the memory's user, or all users that the memory may
            access.
        agent_id: Only conversations with this agent; `None` means all agents.
        thread_id: Only this thread; `None` means all threads.
        retention: The retention; the memory's by default. Without one, only expired chunks and private
            conversations are deleted.
        dry_run: Only report what would be deleted: each conversation is processed, counted and rolled back in turn.

    Returns:
        What was deleted: the number of conversations that lost messages, and of messages, summaries and chunks.
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
