"""Summaries: the rolling one that goes on from segment to segment, and the complete one, made level by level."""

from __future__ import annotations

from langchain_supabase_memory.operations.asking import shortened
from langchain_supabase_memory.operations.summaries.rolling import due, segment, segments, summarize

__all__ = ["due", "segment", "segments", "shortened", "summarize"]
