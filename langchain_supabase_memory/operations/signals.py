"""The flow that lists the signals of a conversation."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids, retention_argument
from langchain_supabase_memory.operations.pages import PAGE
from langchain_supabase_memory.values import ALL_SIGNALS, FoundSignal, Signal, as_signals

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey


def signals(
    key: ConversationKey,
    *,
    only: Iterable[Signal | str] | None = None,
    from_sequence: int | None = None,
    to_sequence: int | None = None,
    limit: int | None = None,
    retention: Retention | None = None,
) -> Flow[list[FoundSignal]]:
    """List what the user's words tell about how the conversation goes, with the words, in order.

    Args:
        key: The conversation.
        only: Only these signals, such as `["complaint"]`; `None` means all.
        from_sequence: The first message to look at; `None` means the beginning.
        to_sequence: The last one; `None` means the end.
        limit: The maximum number of messages with signals; `None` means all.
        retention: The retention to apply; by default all messages are retained.

    Raises:
        InvalidInputError: `only` has something that is no signal, or `limit` is negative.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    bits = ALL_SIGNALS if only is None else as_signals(only, "only")
    found: list[FoundSignal] = []
    left = check_limit("limit", limit)
    place, part = -1, 0
    while left is None or left > 0:
        page = yield from call(
            "memory_signals",
            {
                **conversation_ids(key),
                "p_signals": bits,
                "p_place": place,
                "p_part": part,
                "p_limit": PAGE if left is None else min(left, PAGE),
                "p_retention": retention_argument(retention),
                "p_from_sequence": from_sequence,
                "p_to_sequence": to_sequence,
            },
        )
        rows = page["signals"]
        found += (each for row in rows for each in _row_signals(row))
        if not page["more"] or not rows:
            break
        place, part = rows[-1]["place"], rows[-1]["part"]
        left = None if left is None else left - len(rows)
    return found


def _row_signals(row: Mapping[str, Any]) -> Iterator[FoundSignal]:
    said_at = datetime.fromisoformat(row["said_at"])
    for signal, quote in zip(Signal(row["signals"]), row["quotes"], strict=False):
        yield FoundSignal(signal, quote, row["sequence"], row["message_id"], said_at, row["speaker"])
