"""Resolve a user's references to an earlier turn, such as "the second one" or "yung una".

`find_reference` parses the text and knows nothing of the conversation; `turn_number` counts among the existing turns.
Both are pure. `lexicon` documents a language's data file.
"""

from __future__ import annotations

from typing import Final

from langchain_supabase_memory.language.references.lexicon import LANGUAGES, standard
from langchain_supabase_memory.language.references.resolver import Match, find_reference, turn_number

KEPT: Final = (standard,)
"""What `find_reference` reads from files once; see `flow.compute`."""

__all__ = ["KEPT", "LANGUAGES", "Match", "find_reference", "turn_number"]
