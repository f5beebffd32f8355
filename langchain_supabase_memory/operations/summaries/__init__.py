"""Summaries: the rolling one, a chain of segments, and the complete one, created level by level."""

from __future__ import annotations

from langchain_supabase_memory.operations.model_calls import shorten
from langchain_supabase_memory.operations.summaries.rolling import (
    due_argument,
    is_summary_due,
    list_segments,
    read_segment,
    summarize,
)

__all__ = ["due_argument", "is_summary_due", "list_segments", "read_segment", "shorten", "summarize"]
