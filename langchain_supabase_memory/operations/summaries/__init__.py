"""Summaries: the rolling one that goes on from segment to segment, and the complete one, made level by level."""

from __future__ import annotations

from langchain_supabase_memory.operations.model_calls import shorten
from langchain_supabase_memory.operations.summaries.rolling import (
    is_summary_due,
    list_segments,
    read_segment,
    summarize,
)

__all__ = ["is_summary_due", "list_segments", "read_segment", "shorten", "summarize"]
