"""A summarizer for summaries and boards that quotes the messages instead of calling a language model.

It selects the quotes that cover the most content for their length (`coverage`), and fills a board by rules whose
phrases are data files of a few languages (`phrases`). It needs no key and no network, takes almost no time, is
deterministic, and cannot invent anything. It cannot paraphrase.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.language import query_hints
from langchain_supabase_memory.language.extractive.phrases import phrases
from langchain_supabase_memory.language.extractive.profile.lexicon import profile_phrases
from langchain_supabase_memory.language.messages.encoded_data import words_only

if TYPE_CHECKING:
    from langchain_supabase_memory.effects import Material

KEPT: Final = (*query_hints.KEPT, phrases, profile_phrases)
"""What the summarizer reads from files once; see `flow.compute`."""

__all__ = ["KEPT", "ExtractiveSummarizer"]


class ExtractiveSummarizer:
    """Write summaries and boards by rules.

    Attributes:
        name: The name that is recorded as the summarizer.
    """

    name = "extractive"

    def write(self, material: Material) -> str:
        """Perform a writing task. It never raises, whatever the messages hold.

        Args:
            material: The task and its input.

        Returns:
            For `summary` and `condense` a text of at most `material.characters`, for `board` a JSON document.
        """
        # A memory has this summarizer by default, and only what runs behind an answer lets it write.
        from langchain_supabase_memory.language.extractive.board import board
        from langchain_supabase_memory.language.extractive.digest import summary

        lines = [replace(line, text=words_only(line.text)) for line in material.lines]
        if material.task == "board":
            return board(replace(material, lines=lines))
        previous = None if material.previous is None else words_only(material.previous)
        return summary(previous, () if material.task == "condense" else lines, material.characters)
