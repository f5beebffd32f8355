"""References: words of a user that point at an earlier turn, such as "the second one" or "yung una".

`find` reads the words and knows nothing of the conversation; `turn_number` counts among the turns that exist. Both are
pure. The languages are data files in `languages/`; `language` says how to write one.
"""

from __future__ import annotations

from langchain_supabase_memory.references.resolver import LANGUAGES, Match, find, turn_number

__all__ = ["LANGUAGES", "Match", "find", "turn_number"]
