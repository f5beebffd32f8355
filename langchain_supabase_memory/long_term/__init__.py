"""Long-term memory: what outlives its conversations, in a store of your choice."""

from langchain_supabase_memory.long_term.memories import LongTerm, Memory, Remembered
from langchain_supabase_memory.long_term.promotion import (
    aforget_source,
    apromote,
    forget_source,
    promote,
)
from langchain_supabase_memory.long_term.store_backend import StoreLongTerm
from langchain_supabase_memory.long_term.vector_backend import VectorStoreLongTerm

__all__ = [
    "LongTerm",
    "Memory",
    "Remembered",
    "StoreLongTerm",
    "VectorStoreLongTerm",
    "aforget_source",
    "apromote",
    "forget_source",
    "promote",
]
