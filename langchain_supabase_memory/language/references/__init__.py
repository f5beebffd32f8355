"""References: words of a user that point at an earlier turn, such as "the second one" or "yung una".

`find` reads the words and knows nothing of the conversation; `turn_number` counts among the turns that exist. Both are
pure. `lexicon` says how to write a language's data file.
"""

from __future__ import annotations

from typing import Final

from langchain_supabase_memory.language.references.lexicon import LANGUAGES, standard
from langchain_supabase_memory.language.references.resolver import Match, find_reference, turn_number

KEPT: Final = (standard,)
"""What `find` reads from files once; see `flow.compute`."""

__all__ = ["KEPT", "LANGUAGES", "Match", "find_reference", "turn_number"]
