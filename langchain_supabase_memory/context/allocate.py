"""What stands beside the history: the board and what was recalled, of which neither says what can be read elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_supabase_memory.context.board import BoardPart
    from langchain_supabase_memory.context.recall_part import RecallPart
    from langchain_supabase_memory.context.token_meter import Meter, Sizes
    from langchain_supabase_memory.values import ConversationKey


def allocate(
    board: BoardPart,
    read: BoardPart,
    recalled: RecallPart,
    shown_sequences: Collection[int],
    key: ConversationKey,
    room: Sizes,
    share: int,
    meter: Meter,
) -> tuple[BoardPart, RecallPart]:
    """The board and what was recalled, in the room that the history leaves.

    Items of the board that can be read in what was recalled make room for other items, and then for more that was
    recalled.

    Args:
        board: What of it has room in its share.
        read: All that was read of it.
        recalled: All that was found.
        shown_sequences: The messages that the history shows whole.
        key: The conversation.
        room: What the history leaves of the budget.
        share: The most that the board may weigh.
        meter: What weighs.
    """
    recalled = recalled.without_shown(shown_sequences, key)
    kept = recalled.fitting(room.minus(board.forms(meter)), meter)
    left = board.without_shown(shown_sequences, kept.read(key))
    if len(left.items) == len(board.items):
        return board, kept
    left = left.extended(
        read.without_shown(shown_sequences, kept.read(key)), room.minus(kept.forms(meter)).is_within(share), meter
    )
    while True:
        # What is recalled now stays, so that what it says needs no item; so this ends.
        kept = recalled.fitting(room.minus(left.forms(meter)), meter, kept.chunks)
        fewer = left.without_shown(shown_sequences, kept.read(key))
        if len(fewer.items) == len(left.items):
            return left, kept
        left = fewer
