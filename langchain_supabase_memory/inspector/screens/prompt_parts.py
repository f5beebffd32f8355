"""The parts of a prompt as they are drawn: those of the next prompt, and those of an earlier answer's."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context import next_prompt
from langchain_supabase_memory.context.next_prompt import PARTS, line_of
from langchain_supabase_memory.context.past_prompt import CHANGES
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.inspector.rendering import messages, number
from langchain_supabase_memory.inspector.svg_charts import BarSegment, bar
from langchain_supabase_memory.operations.manifests.parts import PART_REASONS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.context.next_prompt import Line, NextPart
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.past_prompt import RebuiltPart, RebuiltPrompt
    from langchain_supabase_memory.operations.boards.board import BoardItem
    from langchain_supabase_memory.values import Chunk

MAX_LINES: Final = 200
"""The maximum number of messages shown of a part, the newest; the rest is on the timeline."""

_OTHER: Final = "own"


@dataclass(frozen=True)
class ShownPart:
    """A part of a prompt.

    Attributes:
        name: The part's name: see `PartName`.
        tokens: Its approximate tokens.
        characters: Its characters.
        covers: What it covers.
        why: The reason it is there, in sentences.
        raw: The text that the model reads, if it is ours.
        text: The words of the summary, or of a note.
        note: What the summary says of messages that are not shown.
        covered: First and last message that the summary stands for.
        chunks: The recalled passages, the best first.
        items: The items of the board.
        board_summary: A person's summary on the board.
        board_notes: The board's notes.
        lines: Its newest messages: number, speaker, text.
        unshown: How many earlier messages are not shown.
        changes: Why it is not as it was, in sentences.
        changed_items: The items that were edited since, each by the first eight digits of its id.
    """

    name: str
    tokens: int
    characters: int
    covers: str
    why: str
    raw: str = ""
    text: str = ""
    note: str = ""
    covered: tuple[int, int] | None = None
    chunks: Sequence[Chunk] = ()
    items: Sequence[BoardItem] = ()
    board_summary: str = ""
    board_notes: str = ""
    lines: list[Line] = field(default_factory=list)
    unshown: int = 0
    changes: Sequence[str] = ()
    changed_items: Sequence[str] = ()

    @property
    def state(self) -> str:
        """The name of its color."""
        return PARTS[self.name].state if self.name in PARTS else _OTHER

    @property
    def title(self) -> str:
        """The title of the part."""
        return PARTS[self.name].title if self.name in PARTS else self.name


def next_parts(pack: ContextPack) -> list[ShownPart]:
    """Return the parts of the next prompt in the order in which a model reads them."""
    return [_next_part(pack, part) for part in next_prompt.next_parts(pack)]


def _next_part(pack: ContextPack, part: NextPart) -> ShownPart:
    section, name = part.section, part.section.name
    is_summary, is_board = name == "summary", name == "board"
    return ShownPart(
        name,
        section.tokens,
        section.characters,
        section.covers,
        part.why,
        raw=part.text,
        text=pack.fitted.head.text if is_summary else pack.note or "" if name == "note" else "",
        note=pack.note or "" if is_summary else "",
        covered=pack.report().covered if is_summary else None,
        chunks=pack.recalled if name == "recalled" else (),
        items=pack.board.items if is_board else (),
        board_summary=pack.board.edited_summary or "" if is_board else "",
        board_notes=pack.board.context_notes if is_board else "",
        lines=part.lines[-MAX_LINES:],
        unshown=max(0, len(part.lines) - MAX_LINES),
    )


def past_parts(rebuilt: RebuiltPrompt) -> list[ShownPart]:
    """Return the parts of an earlier prompt in the order in which the model read them."""
    return [_past_part(rebuilt, part) for part in rebuilt.parts]


def _past_part(rebuilt: RebuiltPrompt, part: RebuiltPart) -> ShownPart:
    was, manifest = part.was, rebuilt.manifest
    covers = "" if was.first is None or was.last is None else messages(was.first, was.last)
    if was.number is not None:
        covers = f"{'segment' if was.name == 'summary' else 'turn'} {was.number}{': ' if covers else ''}{covers}"
    reasons = {str(name): words for name, words in PART_REASONS.items()}
    is_conversation = was.name in ("recent", "current")
    numbers = part.sequences
    if was.name == "current" and numbers and numbers[0] is None and manifest.turn is not None:
        numbers = (manifest.turn, *numbers[1:])  # the question was stored with its answer
    changes = [CHANGES[change] for change in part.changes]
    lost = len(manifest.items) - len(part.board_items) if was.name == "board" else 0
    if lost:
        changes.append(f"{pluralize(lost, 'item')} {'is' if lost == 1 else 'are'} no longer on the board.")
    lines = (
        [line_of(at, message) for at, message in zip(numbers, part.messages, strict=True)] if is_conversation else []
    )
    return ShownPart(
        was.name,
        was.tokens,
        was.characters,
        covers,
        reasons.get(was.reason, was.reason),
        raw="" if is_conversation else part.text,
        text=(part.segment.content if part.segment else part.text) if was.name == "summary" else "",
        covered=None if was.name != "summary" or was.first is None or was.last is None else (was.first, was.last),
        chunks=part.chunks,
        items=part.board_items,
        lines=lines[-MAX_LINES:],
        unshown=max(0, len(lines) - MAX_LINES),
        changes=changes,
        changed_items=manifest.changed_items,
    )


def spent_bar(parts: Sequence[ShownPart], used: int, limit: int, unit: str) -> list[BarSegment]:
    """Return the budget's bar in the order of the prompt. The sizes of the parts are approximate; the sum is exact.

    Args:
        parts: The parts.
        used: What the prompt used of the budget.
        limit: The budget.
        unit: Its unit.
    """
    sizes = [part.tokens if unit == "tokens" else part.characters for part in parts]
    scale = used / sum(sizes) if sum(sizes) else 0
    named = [
        (part.state, size * scale, f"{part.title}: {number(size)} {unit}", f"#part-{part.name}")
        for part, size in zip(parts, sizes, strict=True)
    ]
    return bar([*named, ("rest", max(0, limit - used), f"unused: {number(max(0, limit - used))} {unit}", "")])
