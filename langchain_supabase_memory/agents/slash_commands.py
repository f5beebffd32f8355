"""The slash command `/summarize`, which the memory answers instead of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.boards.board import Board, read_board
from langchain_supabase_memory.operations.boards.kinds import OPEN_FIRST
from langchain_supabase_memory.operations.summaries import summarize

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.settings import BoardPolicy, SummaryPolicy
    from langchain_supabase_memory.values import ConversationKey

COMMANDS: Final = frozenset({"/summarize", "/summarise"})

_NO_MODEL: Final = "There is no model that could write a summary. Give the memory one: SupabaseMemory(..., model=...)."
UNREACHED: Final = "The summary could not be made just now. Nothing is lost; please try again later."
"""The answer if the memory is unavailable or takes too long."""


def command(messages: Sequence[BaseMessage]) -> HumanMessage | None:
    """Return the user's newest message if it is only a command, in any case and with spaces around it."""
    last = messages[-1] if messages else None
    if not isinstance(last, HumanMessage) or not content.is_conversation(last) or content.media(last.content):
        return None
    return last if str(last.text).strip().casefold() in COMMANDS else None


def summarize_now(
    key: ConversationKey,
    policy: SummaryPolicy,
    board_policy: BoardPolicy,
    *,
    model: str | None,
    time_zone: str | tzinfo | None = None,
    profile: bool = False,
) -> Flow[str]:
    """Summarize messages beyond the recent window, revise the board, and return the board as text.

    Args:
        key: The conversation.
        policy: The summary policy, with every number set.
        board_policy: How the board is revised.
        model: The summarizer's name; `None` without one.
        time_zone: The time zone of the times that the board's summarizer reads; UTC by default.
        profile: Whether what users say of themselves goes into their profile.

    Returns:
        The answer for the user. It reports failures, which lose no data.

    Raises:
        SupabaseMemoryError: The database refused the request or could not be reached.
    """
    from langchain_supabase_memory.operations.boards.revise import revise_board

    failed: str | None = None
    opted_out = False
    if model is not None:
        made = yield from summarize(key, policy, summarizer=model, respect_backoff=False)
        revised = yield from revise_board(key, board_policy, summarizer=model, time_zone=time_zone, profile=profile)
        failed = made.failed or revised.failed
        opted_out = made.opted_out or revised.opted_out
    shown = yield from read_board(key)
    notes = []
    if opted_out:
        notes.append("This conversation is not to be remembered, so there is no summary of it.")
    elif model is None:
        notes.append(_NO_MODEL)
    elif failed is not None:
        notes.append(f"The summary could not be brought up to date ({failed}). Nothing is lost; try again later.")
    return "\n\n".join([*notes, *board_text(shown)]) or "There is nothing to summarize yet."


def board_text(board: Board) -> list[str]:
    """Format a board's summary and open items as paragraphs of plain text."""
    parts = [text for text in (board.edited_summary, board.summary) if text]
    for kind in OPEN_FIRST:
        if kind.can_close and (items := board.of_kind(kind.kind)):
            parts.append("\n".join([f"{kind.heading}:", *(f"- {item.text}" for item in items)]))
    return parts


def answer(question: HumanMessage, text: str) -> list[BaseMessage]:
    """Return the command and its answer, marked as synthetic: neither is stored, summarized or indexed."""
    return [content.mark_as_ours(question.model_copy()), content.mark_as_ours(AIMessage(text))]
