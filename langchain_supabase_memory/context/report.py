"""What was sent and why, without a word of it: numbers, ids and reasons, for a terminal, a notebook or a stream."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory import markup
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.operations.manifests.beginning import MOVES, Move

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.table import Table


@dataclass(frozen=True)
class Section:
    """A part of the prompt.

    Attributes:
        name: `profile`, `summary` (or `note`, without one), `recent`, `board`, `shared`, `recalled` or `current`.
        messages: How many messages.
        characters: Characters of what is sent.
        tokens: Their approximate tokens.
        covers: What it stands for, such as `messages 0 to 57`.
    """

    name: str
    messages: int
    characters: int
    tokens: int
    covers: str


@dataclass(frozen=True)
class ContextReport:
    """What a pack sends, and what it spares.

    Attributes:
        thread_id: The conversation's thread.
        sections: The parts of the prompt, in order.
        message_ids: The ids of the messages shown, in order.
        budget: The most that it may weigh, with its unit.
        used: What it weighs, in the same unit.
        summary: The number of the segment shown; `None` without one.
        covered: The range that the summary covers; `None` without one.
        through_sequence: The last message that any stored summary covers; -1 if none.
        omitted: First, last and reason of each range of messages that is neither shown nor covered.
        clipped: The sequences of messages that are shown cut.
        full_messages: How many messages the whole history has.
        full_characters: Its characters: what resending it all would cost.
        full_tokens: Its approximate tokens.
        previous_response_id: Whether the provider was asked to go on from a response that it holds, so that only what
            is new was sent; `None` if nobody said.
        summary_error: Why the last try of a summary failed, in a word; `None` if it did not.
        recall_error: Why words alone found what was recalled though there is an embedder; `None` if they did not.
        rerank_error: Why the reranker did not order what was recalled; `None` if it did, or if there is none.
        nothing_fits: Whether recall found nothing that fits the question, so that nothing recalled is shown.
        board_left_out: How many items of the board were read for the pack and have no room in it.
        refused_spaces: The spaces whose boards were asked for, and which the user is not in.
        moved: Why the prompt's beginning is another than that of the prompt before, which costs it its place in a
            provider's cache; `None` if it is the same, or if this process made none before.
    """

    thread_id: str
    sections: list[Section]
    message_ids: list[str] = field(repr=False)
    budget: str
    used: int
    summary: int | None
    covered: tuple[int, int] | None
    through_sequence: int
    omitted: list[tuple[int, int, str]]
    clipped: list[int]
    full_messages: int
    full_characters: int
    full_tokens: int
    previous_response_id: bool | None = None
    summary_error: str | None = None
    recall_error: str | None = None
    rerank_error: str | None = None
    nothing_fits: bool = False
    board_left_out: int = 0
    refused_spaces: list[str] = field(default_factory=list)
    moved: Move | None = None
    characters: int = field(init=False)
    tokens: int = field(init=False)
    saved_characters: int = field(init=False)
    saved_tokens: int = field(init=False)

    def __post_init__(self) -> None:
        characters = sum(section.characters for section in self.sections)
        tokens = sum(section.tokens for section in self.sections)
        object.__setattr__(self, "characters", characters)
        object.__setattr__(self, "tokens", tokens)
        # A short history costs a few characters more with a head than without: that is said too.
        object.__setattr__(self, "saved_characters", self.full_characters - characters)
        object.__setattr__(self, "saved_tokens", self.full_tokens - tokens)

    def to_dict(self) -> dict[str, Any]:
        """The report as JSON-like values, for a stream event or a log."""
        return {
            **vars(self),
            "sections": [{**vars(each)} for each in self.sections],
            "message_ids": [*self.message_ids],
            "clipped": [*self.clipped],
            "refused_spaces": [*self.refused_spaces],
            "covered": None if self.covered is None else list(self.covered),
            "omitted": [list(each) for each in self.omitted],
        }

    def __rich__(self) -> Table:
        """A table for a terminal (needs `rich`)."""
        from rich.table import Table

        table = Table(title=self._title(), title_justify="left", caption=self._caption())
        for place, heading in enumerate(_HEADINGS):
            table.add_column(heading, justify="right" if 0 < place < 4 else "left")
        for row in self._rows():
            table.add_row(*row)
        return table

    def _repr_html_(self) -> str:
        return markup.table(self._title(), _HEADINGS, self._rows(), note=self._caption())

    def __str__(self) -> str:
        """The same in plain text."""
        rows = [_HEADINGS, *self._rows()]
        widths = [max(len(row[place]) for row in rows) for place in range(len(_HEADINGS))]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
        return "\n".join([self._title(), *lines, self._caption()])

    def _rows(self) -> Iterator[tuple[str, ...]]:
        for each in self.sections:
            yield each.name, f"{each.messages:,}", f"{each.characters:,}", f"{each.tokens:,}", each.covers
        yield "sent", "", f"{self.characters:,}", f"{self.tokens:,}", f"{self.used:,} of {self.budget}"
        full = (f"{self.full_messages:,}", f"{self.full_characters:,}", f"{self.full_tokens:,}")
        yield "whole history", *full, "what resending everything would cost"
        yield (
            "saved",
            "",
            _share(self.saved_characters, self.full_characters),
            _share(self.saved_tokens, self.full_tokens),
            "",
        )

    def _title(self) -> str:
        return f"Context of {spell_out(self.thread_id)}"

    def _caption(self) -> str:
        said = [f"messages {first} to {last} omitted: {why}" for first, last, why in self.omitted]
        said = said or ["nothing omitted"]
        if self.board_left_out:
            said.append(f"{pluralize(self.board_left_out, 'item')} of the board left out")
        said += [f"the space {spell_out(each)} may not be read" for each in self.refused_spaces]
        if self.moved is not None:
            said.append(f"the beginning moved: {MOVES[self.moved]}")
        if self.summary_error is not None:
            said.append(f"the last summary failed: {self.summary_error}")
        if self.recall_error is not None:
            said.append(f"recalled by words alone: {self.recall_error}")
        if self.rerank_error is not None:
            said.append(f"recalled in the first stage's order: {self.rerank_error}")
        if self.nothing_fits:
            said.append("nothing fits the question")
        if self.previous_response_id is not None:
            said.append(f"previous_response_id {'used' if self.previous_response_id else 'not used'}")
        return "; ".join(said)


_HEADINGS = ("section", "messages", "characters", "tokens", "covers")


def _share(saved: int, total: int) -> str:
    return f"{saved:,} ({saved / total:.0%})" if total else "0"
