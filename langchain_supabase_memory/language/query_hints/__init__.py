"""Cues: what a question names and asks for, and the marks of a text that may answer it.

`find_hints` reads a question: the names, the dates, and whether it asks for a time, a number or what the assistant
said. `marks` says of a text whether it asks, itself, and whether a time, a number or a name is in it; `relative_days`
says of which days it tells. They are pure, need no model and raise nothing. All languages are in use at once;
`lexicon` says how to write a data file of one.
"""

from __future__ import annotations

from typing import Final

from langchain_supabase_memory.language.query_hints.dates import NamedDate
from langchain_supabase_memory.language.query_hints.lexicon import lexicon
from langchain_supabase_memory.language.query_hints.names import without
from langchain_supabase_memory.language.query_hints.question import QueryHints, find_hints
from langchain_supabase_memory.language.query_hints.retrieved_text import Days, relative_days
from langchain_supabase_memory.language.query_hints.statement import Marks, marks

KEPT: Final = (lexicon,)
"""What all of this reads from files once; see `flow.compute`."""

__all__ = ["KEPT", "Days", "Marks", "NamedDate", "QueryHints", "find_hints", "marks", "relative_days", "without"]
