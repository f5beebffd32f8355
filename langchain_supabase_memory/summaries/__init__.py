"""Summaries: the rolling one that goes on from segment to segment, and the complete one, made level by level."""

from __future__ import annotations

from langchain_supabase_memory.summaries.complete import complete
from langchain_supabase_memory.summaries.rolling import due, segment, segments, summarize
from langchain_supabase_memory.writing import shortened

__all__ = ["complete", "due", "segment", "segments", "shortened", "summarize"]
