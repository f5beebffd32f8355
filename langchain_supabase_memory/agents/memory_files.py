"""The memory as Markdown files, for agents that read files: the profile, the board and the summary.

Each file is made when it is read, so what was forgotten, opted out of, redacted or has expired is in none.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.agents.tools.history import read_summary
from langchain_supabase_memory.agents.tools.output_limit import date_of, note
from langchain_supabase_memory.agents.tools.profile import describe_basis, describe_item
from langchain_supabase_memory.context import board as board_part
from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.operations import profile
from langchain_supabase_memory.operations.boards.board import read_board
from langchain_supabase_memory.values import SPACE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import tzinfo

    from langchain_supabase_memory.agents.tools.binding import ToolCall
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.operations.boards.board import Board

_MAX_ITEMS: Final = 200
"""The maximum number of items in a file."""

_MORE: Final = "There are more."


def read_files(call: ToolCall, names: Sequence[str]) -> Flow[dict[str, str]]:
    """Return files by their names, each as one fenced text.

    Args:
        call: The call, which says whose files they are.
        names: Keys of `FILES`.

    Raises:
        InvalidInputError: No thread is named.
    """
    texts = {}
    for name in names:
        texts[name] = yield from FILES[name](call)
    return texts


def _profile(call: ToolCall) -> Flow[str]:
    scope = call.scope("agent")
    if (scope.user_id or "").startswith(SPACE):
        return note("This conversation belongs to a team, which has no profile.")
    items = yield from profile.read(scope.user_id, agent_id=scope.agent_id, states=("held",), limit=_MAX_ITEMS + 1)
    if not items:
        return note("Nothing is remembered about the user yet.")
    lines = ["# What is remembered about the user", ""]
    for item in items[:_MAX_ITEMS]:
        since = date_of(item.held_at or item.first_seen_at, call.zone)
        lines.append(_one_line(f"- {item.kind}: {describe_item(item)} (since {since}; {describe_basis(item)})"))
    return _file("user_profile", lines, _MORE if len(items) > _MAX_ITEMS else "")


def _board(call: ToolCall) -> Flow[str]:
    retention = call.binding.memory._services.settings.retention
    board = yield from read_board(call.key(), limit=_MAX_ITEMS, retention=retention)
    lines = list(_board_lines(board, call.zone))
    if not lines:
        return note("There is no board of this conversation yet.")
    return _file("board", ["# The board of this conversation", "", *lines], _MORE if board.unlisted else "")


def _board_lines(board: Board, zone: tzinfo) -> Iterator[str]:
    """Yield the summary, then what holds and is open, the most important first."""
    summary = board.edited_summary or board.summary
    if summary.strip():
        yield from (summary.strip(), "")
    if board.context_notes.strip():
        yield _one_line(f"- notes: {board.context_notes}")
    for item in sorted((each for each in board.items if each.is_open), key=board_part.item_weight):
        yield f"{board_part.line(item)} ({date_of(item.last_seen_at, zone)})"


def _summary(call: ToolCall) -> Flow[str]:
    passages, remark = yield from read_summary(call, call.key())
    if not passages:
        return note(remark)
    (summary,) = passages
    heading = f"# Summary of messages {summary.attributes['messages']}, made {summary.attributes['made_at']}"
    return _file("summary", [heading, "", summary.text], remark)


def _file(tag: str, lines: Sequence[str], remark: str) -> str:
    """Return a file's text, fenced as data, as in a prompt: whoever reads it takes it for no instructions."""
    return fence.fenced([fence.element(tag, "\n".join(lines)), *([fence.element("note", remark)] if remark else [])])


def _one_line(text: str) -> str:
    return " ".join(text.split())


FILES: Final[Mapping[str, Callable[[ToolCall], Flow[str]]]] = MappingProxyType(
    {"board.md": _board, "profile.md": _profile, "summary.md": _summary}
)
"""The files, in the order in which they are listed."""
