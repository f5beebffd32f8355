"""What stands beside the history: the board and what was recalled, of which neither says what can be read elsewhere."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from langchain_supabase_memory.context.board import BoardPart
    from langchain_supabase_memory.context.meters import Forms, Meter
    from langchain_supabase_memory.context.recalled import Recalled
    from langchain_supabase_memory.values import ConversationKey


def filled(
    board: BoardPart,
    read: BoardPart,
    recalled: Recalled,
    shown: Collection[int],
    key: ConversationKey,
    room: Forms,
    share: int,
    meter: Meter,
) -> tuple[BoardPart, Recalled]:
    """The board and what was recalled, in the room that the history leaves.

    Items of the board that can be read in what was recalled make room for other items, and then for more that was
    recalled.

    Args:
        board: What of it has room in its share.
        read: All that was read of it.
        recalled: All that was found.
        shown: The messages that the history shows whole.
        key: The conversation.
        room: What the history leaves of the budget.
        share: The most that the board may weigh.
        meter: What weighs.
    """
    recalled = recalled.without(shown, key)
    kept = recalled.fitting(room.less(board.forms(meter)), meter)
    left = board.beyond(shown, kept.read(key))
    if len(left.items) == len(board.items):
        return board, kept
    left = left.filled(read.beyond(shown, kept.read(key)), room.less(kept.forms(meter)).within(share), meter)
    while True:
        # What is recalled now stays, so that what it says needs no item; so this ends.
        kept = recalled.fitting(room.less(left.forms(meter)), meter, kept.chunks)
        fewer = left.beyond(shown, kept.read(key))
        if len(fewer.items) == len(left.items):
            return left, kept
        left = fewer
