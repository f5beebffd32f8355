"""The flows over conversations: append, read, count, forget. Each is one call, except reading long ranges."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, TypeVar, get_args

from langchain_core.messages import ChatMessage

from langchain_supabase_memory import documents
from langchain_supabase_memory.checks import as_texts, known_names, require_type, wrong_type
from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError, TooLargeError
from langchain_supabase_memory.language.messages import codec, content, sanitizer, truncation
from langchain_supabase_memory.language.messages.encoded_data import readable_size
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids, moment, retention_argument
from langchain_supabase_memory.operations.pages import PAGE
from langchain_supabase_memory.operations.unreadable import quarantine
from langchain_supabase_memory.values import (
    AppendResult,
    ConversationKey,
    Receipt,
    StoredMessage,
    check_id,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.operations.branch import BranchUpdate
    from langchain_supabase_memory.operations.manifests.encoding import Lists
    from langchain_supabase_memory.settings import Retention

_logger = logging.getLogger(__name__)

T = TypeVar("T")

Column = Literal[
    "message_id",
    "role",
    "text",
    "characters",
    "tokens",
    "created_at",
    "updated_at",
    "metadata",
    "images",
    "payload",
    "unreadable",
    "author_id",
    "author_name",
    "parent",
]
"""The columns of a message that can be read; `sequence` is always included."""

ALL_COLUMNS: Final[tuple[Column, ...]] = get_args(Column)


class OtherConversationError(Exception):
    """The stored state is not the one that a graph's state continues from; nothing was stored.

    Args:
        answer: The reason: `foreign`, `moved`, `lacking` or `unfamiliar`, as the SQL function reports it.
    """

    def __init__(self, answer: Mapping[str, Any]) -> None:
        super().__init__()
        self.answer = answer


def append(
    key: ConversationKey,
    messages: Iterable[BaseMessage],
    *,
    metadata: Mapping[str, Any] | None = None,
    created_at: datetime | Sequence[datetime | None] | None = None,
    replace: bool = True,
    retention: Retention | None = None,
    redactor: Redactor | None = None,
    idempotency_key: str | None = None,
    branch: BranchUpdate | None = None,
    manifest: Lists | None = None,
) -> Flow[AppendResult]:
    """Store messages in order, each once, all or none, in one round trip, as `Conversation.append`.

    Args:
        key: The conversation; the first append creates it.
        messages: LangChain messages.
        metadata: The metadata to store with each message.
        created_at: The messages' times.
        replace: Whether to replace a stored message that has other content.
        retention: The retention to apply.
        redactor: Removes secrets and personal data before storage. The message objects do not change.
        idempotency_key: Identifies this call.
        branch: The graph state that the messages come from; it receives the answer.
        manifest: The manifest of the prompt that they answer, within its size limit.

    Raises:
        OtherConversationError: With `branch`, the stored state is not the expected one; nothing was stored.
    """
    listed = codec.as_messages(messages)
    times = _times(created_at, len(listed))
    if idempotency_key is not None:
        check_id("idempotency_key", idempotency_key)
    codec.ensure_ids(listed, idempotency_key)
    beside = None
    if metadata is not None:
        require_type("metadata", metadata, Mapping, 'metadata={"source": "web"}')
        beside = sanitizer.encode(dict(metadata))
    if redactor is not None:
        beside = redact_value(beside, redactor)

    rows: dict[str, dict[str, Any]] = {}
    for message, time in zip(listed, times, strict=True):
        if content.is_conversation(message):
            row = {"metadata": beside, "created_at": time, **codec.to_row(message, redactor)}
            rows[row["id"]] = row
    arguments = {**conversation_ids(key), "p_replace": replace, "p_retention": retention_argument(retention)}
    if branch is not None:
        arguments["p_branch"] = branch.document
    if manifest is not None:
        arguments["p_manifest"] = manifest
    if key.author_id is not None:
        arguments["p_author_id"] = key.author_id
    if key.private:
        arguments["p_private"] = True
    answer = yield from _stored(rows, arguments)
    if branch is not None:
        branch.answer = answer
    if answer["sequences"] is None:
        raise OtherConversationError(answer)
    numbers = dict(zip(rows, answer["sequences"], strict=True))
    appended = answer["appended"]
    if answer.get("repeated"):
        appended += yield from _append_repeated(answer["repeated"], listed, rows, numbers, arguments, redactor)
    return AppendResult(
        conversation_id=answer["conversation_id"],
        sequences=[numbers.get(codec.row_id(message.id)) for message in listed],
        appended=appended,
        updated=answer["updated"],
    )


def _append_repeated(
    repeated: Sequence[str],
    messages: Sequence[BaseMessage],
    rows: Mapping[str, dict[str, Any]],
    numbers: dict[str, int | None],
    arguments: Mapping[str, Any],
    redactor: Redactor | None,
) -> Flow[int]:
    """Store messages whose id is already taken under a new id, record their numbers, and return how many were new."""
    branch = arguments.get("p_branch")
    asked = next((codec.row_id(message.id) for message in reversed(messages) if message.type == "human"), None)
    turn = asked or (branch or {}).get("turn") or ""
    renamed = codec.rename(messages, repeated, turn)
    again = {}
    for message in messages:
        if codec.row_id(message.id) in renamed.values():
            before = next(old for old, new in renamed.items() if new == message.id)
            again[codec.row_id(message.id)] = {**rows[before], **codec.to_row(message, redactor)}
    more = {} if branch is None else {"p_branch": {**branch, "ids": [renamed.get(i, i) for i in branch["ids"]]}}
    answer = yield from _stored(again, {**arguments, **more})
    if answer["sequences"] is not None:
        numbers.update(zip(again, answer["sequences"], strict=True))
    return int(answer["appended"])


def _stored(rows: dict[str, dict[str, Any]], arguments: Mapping[str, Any]) -> Flow[Mapping[str, Any]]:
    """Store rows; parts that exceed the database's limit are removed, and a note names them in place."""
    whole = dict(rows)
    texts = {name: documents.dumps(row) for name, row in rows.items()}
    largest = max(map(len, texts.values()), default=0)
    if largest > truncation.MESSAGE_BYTES:
        limits = yield from call("memory_limits", {})
        largest = _shrink(rows, texts, limits["message_bytes"])
    while True:
        messages = documents.Dumped(rows.values(), texts.values())
        try:
            answer = yield from call("memory_append", {**arguments, "p_messages": messages})
        except TooLargeError:
            # The limit here, of the database or a proxy in front of it, is lower than usual. Several rows are split
            # first.
            if len(rows) > 1 or largest <= _SMALLEST:
                raise
            before, largest = largest, _shrink(rows, texts, largest // 2)
            if largest * 4 > before * 3:  # the rest cannot be shrunk, so a retry would fail again
                raise too_large_ids(rows) from None
        else:
            for name in rows:
                if rows[name] is not whole[name]:
                    _logger.warning(
                        "A message of %s is stored without some of it, and later turns are not shown that: send a"
                        " link, or raise message_bytes in memory_private.limits",
                        readable_size(truncation.size(whole[name])),
                        extra={"memory_message_id": name},
                    )
            return answer  # type: ignore[no-any-return]


@dataclasses.dataclass
class AppendedRows:
    """The result of storing rows that were created elsewhere.

    Attributes:
        new: How many rows are new.
        known: How many were already stored, or were forgotten there.
        different: The ids of stored messages that have another payload, which is not changed.
        smaller: The ids of messages that were shrunk to the database's limit.
        refused: The errors of messages that the database rejects in any form, by id.
        expired: How many messages retention removed.
    """

    new: int = 0
    known: int = 0
    different: list[str] = dataclasses.field(default_factory=list)
    smaller: list[str] = dataclasses.field(default_factory=list)
    refused: dict[str, SupabaseMemoryError] = dataclasses.field(default_factory=dict)
    expired: int = 0


def append_rows(
    key: ConversationKey, rows: Mapping[str, dict[str, Any]], *, retention: Retention | None, skip: bool
) -> Flow[AppendedRows]:
    """Store rows that were created elsewhere, without changing stored ones.

    Args:
        key: The conversation.
        rows: Rows as `codec.to_row` creates them, by id.
        retention: The retention to apply.
        skip: Whether to store the rows after a rejected one.
    """
    result = AppendedRows()
    ids = conversation_ids(key) | ({} if key.author_id is None else {"p_author_id": key.author_id})
    yield from _append_part(result, ids, rows, retention, skip)
    return result


def _append_part(
    result: AppendedRows,
    ids: Mapping[str, Any],
    rows: Mapping[str, dict[str, Any]],
    retention: Retention | None,
    skip: bool,
) -> Flow[None]:
    """Store rows and record the result; a rejected batch is halved until the rejected row is found."""
    arguments = {**ids, "p_replace": False, "p_retention": retention_argument(retention)}
    try:
        answer = yield from call("memory_append", {**arguments, "p_messages": [*rows.values()]})
    except (InvalidInputError, TooLargeError) as error:
        names = list(rows)
        if len(names) > 1:
            for part in (names[: len(names) // 2], names[len(names) // 2 :]):
                if skip or not result.refused:
                    half = {name: rows[name] for name in part}
                    yield from _append_part(result, ids, half, retention, skip)
            return
        if not isinstance(error, TooLargeError):
            result.refused[names[0]] = error
            return
        fitting = dict(rows)
        try:
            answer = yield from _stored(fitting, arguments)
        except (InvalidInputError, TooLargeError) as again:
            result.refused[names[0]] = again
            return
        result.smaller += [name for name in names if fitting[name] is not rows[name]]
    result.new += answer["appended"]
    result.known += len(rows) - answer["appended"]
    result.different += answer.get("different", ())
    result.expired += answer.get("expired", 0)


_SMALLEST: Final = 16_384
"""Messages of fewer bytes are not shrunk."""


def too_large_ids(rows: Mapping[str, Mapping[str, Any]]) -> TooLargeError:
    """Return the error that names the largest field of the largest row."""
    row = max(rows.values(), key=truncation.size)
    held, field = max((truncation.size(value), name) for name, value in row.items())
    return TooLargeError(
        f"The {field} of a message has {readable_size(held)}, exceeds the database's limit, and cannot be cut.",
        hint=f"Store less in {field}, or raise message_bytes in memory_private.limits.",
    )


def _shrink(rows: dict[str, dict[str, Any]], texts: dict[str, bytes], max_bytes: int) -> int:
    """Shrink every row and its JSON to at most `max_bytes`, and return the size of the largest."""
    for name, row in rows.items():
        rows[name] = codec.fit_row(row, max_bytes)
        if rows[name] is not row:
            texts[name] = documents.dumps(rows[name])
    return max(map(len, texts.values()))


def read(
    key: ConversationKey,
    *,
    first: int | None = None,
    last: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    from_sequence: int | None = None,
    to_sequence: int | None = None,
    columns: Sequence[Column] | None = None,
    display: bool = False,
    superseded: bool = False,
    retention: Retention | None = None,
) -> Flow[list[StoredMessage]]:
    """Read messages in order: all of them, or those within every given bound.

    Args:
        key: The conversation.
        first: Only this many of the oldest messages.
        last: Only this many of the newest messages.
        since: Only messages from this time on, with a time zone.
        until: Only messages before this time, with a time zone.
        from_sequence: Only messages with this number or a higher one.
        to_sequence: Only messages with this number or a lower one; -1 is before the first.
        columns: The columns to read; `sequence` is always included. Without `payload`, `message` raises. By
            default `payload`, and with `display` the columns of a chat page: `message_id`, `role`, `text`,
            `images`, `created_at`, `updated_at` and `metadata`; in a space also `author_id` and
            `author_name`.
        display: Only what a chat page shows: text of the user and the assistant, with media as references; no tool
            calls or results, no system messages.
        superseded: Read the messages that a graph has left instead of the current ones; see `reinstate`.
        retention: Messages beyond this retention are not returned; by default the memory's retention.

    Returns:
        The messages, oldest first, however many there are: long ranges are read by pages. An unreadable message is
        empty, and its `unreadable` gives the reason.

    Raises:
        InvalidInputError: A bound is negative, both `first` and `last` are given, a time is naive, or a column is
            unknown.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if columns is None:
        columns = (*(_DISPLAYED if display else ("payload",)), *(_OF_SPACES if key.is_in_space else ()))
    rows = yield from read_rows(
        key,
        first=first,
        last=last,
        since=since,
        until=until,
        from_sequence=from_sequence,
        to_sequence=to_sequence,
        columns=columns,
        display=display,
        superseded=superseded,
        retention=retention,
    )
    found = [codec.from_row(row) for row in rows]
    yield from quarantine(key, codec.undecodable_rows(rows, [each.payload or _NOTHING for each in found]))
    return [
        each if each.payload is None else dataclasses.replace(each, unreadable=codec.unreadable_message(each.payload))
        for each in found
    ]


_DISPLAYED: Final[tuple[Column, ...]] = ("message_id", "role", "text", "images", "created_at", "updated_at", "metadata")
"""The columns of a message that a chat page shows."""

_OF_SPACES: Final[tuple[Column, ...]] = ("author_id", "author_name")
"""The columns that say who wrote a message of a space."""

_NOTHING: Final = ChatMessage(role="none", content="")


def read_superseded(
    key: ConversationKey,
    *,
    from_sequence: int | None = None,
    to_sequence: int | None = None,
    columns: Sequence[Column] | None = None,
    retention: Retention | None = None,
) -> Flow[list[StoredMessage]]:
    """List the messages that a graph has left, in order; `reinstate` restores them.

    Args:
        key: The conversation.
        from_sequence: Only messages with this number or a higher one.
        to_sequence: Only messages with this number or a lower one.
        columns: The columns to read, as for `read`; by default `payload`.
        retention: Messages beyond this retention are not returned.

    Returns:
        The messages, oldest first.

    Raises:
        InvalidInputError: A bound is negative, or a column is unknown.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    return (
        yield from read(
            key,
            from_sequence=from_sequence,
            to_sequence=to_sequence,
            columns=columns,
            superseded=True,
            retention=retention,
        )
    )


def read_rows(
    key: ConversationKey,
    *,
    first: int | None = None,
    last: int | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    from_sequence: int | None = None,
    to_sequence: int | None = None,
    columns: Sequence[Column] = ("payload",),
    display: bool = False,
    superseded: bool = False,
    retention: Retention | None = None,
) -> Flow[list[Mapping[str, Any]]]:
    """Return the rows behind `read` as the database returns them, for callers that decode them more than once."""
    for name, number in (("first", first), ("last", last), ("from_sequence", from_sequence)):
        check_limit(name, number)
    if to_sequence != -1:  # before the first page: no messages
        check_limit("to_sequence", to_sequence)
    if first is not None and last is not None:
        raise InvalidInputError("first and last cannot be combined.", hint="Pass first or last.")
    known_names("columns", columns, ("sequence", *ALL_COLUMNS))
    most = first if last is None else last
    if most == 0 or to_sequence == -1:
        return []
    arguments = {
        **conversation_ids(key),
        "p_since": moment("since", since),
        "p_until": moment("until", until),
        "p_columns": list(columns),
        "p_display": display,
        **({"p_superseded": True} if superseded else {}),
        "p_retention": retention_argument(retention),
    }
    found: list[Mapping[str, Any]] = []
    lower, upper = from_sequence, to_sequence
    while True:
        wanted = PAGE if most is None else min(PAGE, most - len(found))
        bounds = {"p_from": lower, "p_to": upper, "p_limit": wanted, "p_last": None if last is None else wanted}
        answer = yield from call("memory_read", {**arguments, **bounds})
        page: list[Mapping[str, Any]] = answer["messages"]
        found = [*found, *page] if last is None else [*page, *found]
        # The database ends a page at a row or byte limit, and reports whether there are more.
        if not answer["more"] or not page or len(found) == most:
            return found
        if last is None:
            lower = page[-1]["sequence"] + 1
        else:
            upper = page[0]["sequence"] - 1


def count(key: ConversationKey, *, retention: Retention | None = None) -> Flow[int]:
    """Count the conversation's messages; 0 if it does not exist. The cost does not grow with the history.

    Args:
        key: The conversation.
        retention: The retention to apply; by default all messages are retained.
    """
    ids = conversation_ids(key)
    answer: int = yield from call("memory_count", {**ids, "p_retention": retention_argument(retention)})
    return answer


def forget(key: ConversationKey, *, dry_run: bool = False) -> Flow[Receipt]:
    """Delete a conversation with everything derived from it, as `Conversation.forget`."""
    return _receipt((yield from call("memory_forget", {**conversation_ids(key), "p_dry_run": dry_run})), dry_run)


def forget_user(user_id: str | None, *, agent_id: str | None = None, dry_run: bool = False) -> Flow[Receipt]:
    """Delete all data of a user, as `SupabaseMemory.forget_user`; `None` means the access token's subject."""
    if agent_id is not None:
        check_id("agent_id", agent_id)
    arguments = {"p_user_id": user_id, "p_agent_id": agent_id, "p_everything": True, "p_dry_run": dry_run}
    return _receipt((yield from call("memory_forget", arguments)), dry_run)


def reinstate(key: ConversationKey, message_ids: Sequence[str]) -> Flow[list[int]]:
    """Restore messages that a graph has left, because it was forked or they were removed from its state.

    They return to their own numbers, and no graph state can remove them any more.

    Args:
        key: The conversation.
        message_ids: The ids of superseded messages, as `list` gives them.

    Returns:
        The numbers of the restored messages. Ids that are not superseded are skipped.

    Raises:
        InvalidInputError: `message_ids` is not a list.
    """
    listed = as_texts("message_ids", message_ids, "a list of ids", 'Pass ["..."].')
    ids = [codec.row_id(each) for each in listed]
    numbers: list[int] = []
    for first in range(0, len(ids), PAGE):
        page = {"p_message_ids": ids[first : first + PAGE]}
        numbers += yield from call("memory_reinstate", {**conversation_ids(key), **page})
    return numbers


def forget_message(key: ConversationKey, message_id: str, *, dry_run: bool = False) -> Flow[Receipt]:
    """Delete one message and the summaries created from it, as `Conversation.forget_message`."""
    if not isinstance(message_id, str):
        raise wrong_type("message_id", "a text", message_id, "Pass message_id=message.id.", InvalidInputError)
    arguments = {**conversation_ids(key), "p_message_id": codec.row_id(message_id), "p_dry_run": dry_run}
    return _receipt((yield from call("memory_forget_message", arguments)), dry_run)


def forget_expired(
    retention: Retention | None,
    *,
    user_id: str | None = None,
    agent_id: str | None = None,
    thread_id: str | None = None,
    dry_run: bool = False,
    report: Callable[[Receipt], None] | None = None,
) -> Flow[Receipt]:
    """Delete what has expired in every conversation that the caller may access.

    That is messages beyond the retention, expired chunks, and private conversations that are a day old.

    Args:
        retention: The retention; `None` deletes no messages of conversations that are not private.
        user_id: Only this user's conversations; `None` means all users.
        agent_id: Only conversations with this agent; `None` means all agents.
        thread_id: Only this thread; `None` means all threads.
        dry_run: Only report what would be deleted.
        report: Called after each transaction with what has been deleted so far.

    Returns:
        What was deleted: the number of conversations that lost messages, and of messages, summaries and chunks.
    """
    gone = Receipt(dry_run=dry_run)
    after: Mapping[str, str] = {}
    whose = {"p_user_id": user_id, "p_agent_id": agent_id, "p_thread_id": thread_id}
    for name, value in whose.items():
        if value is not None:
            check_id(name.removeprefix("p_"), value)
    arguments = {"p_retention": retention_argument(retention), **whose, "p_dry_run": dry_run, "p_limit": 1000}
    while True:
        place = {"p_after_user": after.get("user"), "p_after": after.get("id")}
        answer = yield from call("memory_forget_expired", {**arguments, **place})
        counted = ("conversations", "messages", "segments", "chunks")
        gone = dataclasses.replace(gone, **{name: getattr(gone, name) + answer[name] for name in counted})
        if report is not None:
            report(gone)
        after = answer["after"]
        if after is None:
            return gone


def _receipt(answer: Mapping[str, int], dry_run: bool) -> Receipt:
    kinds = (each.name for each in dataclasses.fields(Receipt) if each.name != "dry_run")
    return Receipt(**{name: answer.get(name, 0) for name in kinds}, dry_run=dry_run)


def _times(created_at: datetime | Sequence[datetime | None] | None, length: int) -> list[str | None]:
    if created_at is None:
        return [None] * length
    if isinstance(created_at, (datetime, str)) or not isinstance(created_at, Sequence):
        return [moment("created_at", created_at)] * length
    if len(created_at) != length:
        raise InvalidInputError(
            f"created_at has {len(created_at)} times for {length} messages.", hint="Pass one time, or one for each."
        )
    return [moment("created_at", time) for time in created_at]
