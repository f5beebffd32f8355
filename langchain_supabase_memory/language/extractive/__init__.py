"""A writer of summaries and boards that is no language model: it quotes, and says so.

It selects the words that hold most of what was said for the characters they take (`coverage`), and fills a board by
rules whose phrases are data files of a few languages (`phrases`). It needs no key, no network and no time to speak of,
always gives the same for the same, and cannot make anything up; what it cannot do is put things in its own words.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.language.extractive.board import board
from langchain_supabase_memory.language.extractive.digest import summary
from langchain_supabase_memory.language.extractive.phrases import phrases
from langchain_supabase_memory.language.messages.encoded_data import words_only

if TYPE_CHECKING:
    from langchain_supabase_memory.effects import Material

KEPT: Final = (*query_hints.KEPT, phrases)
"""What all of this reads from files once; see `flow.compute`."""

__all__ = ["KEPT", "ExtractiveSummarizer"]


class ExtractiveSummarizer:
    """Writes summaries and boards by rules.

    Attributes:
        name: What is noted as the writer.
    """

    name = "extractive"

    def write(self, material: Material) -> str:
        """Write what is asked for. It never raises, whatever was said.

        Args:
            material: The task, and what there is to write from.

        Returns:
            For `summary` and `condense` a text of at most `material.characters`, for `board` a JSON document.
        """
        lines = [replace(line, text=words_only(line.text)) for line in material.lines]
        if material.task == "board":
            return board(replace(material, lines=lines))
        previous = None if material.previous is None else words_only(material.previous)
        return summary(previous, () if material.task == "condense" else lines, material.characters)
