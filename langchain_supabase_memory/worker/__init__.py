"""The background worker, which indexes, summarizes, archives and expires conversations."""

from __future__ import annotations

from langchain_supabase_memory.worker.cleanup import cleanup
from langchain_supabase_memory.worker.policy import WorkerPolicy
from langchain_supabase_memory.worker.worker import Worker, WorkerStats

__all__ = ["Worker", "WorkerPolicy", "WorkerStats", "cleanup"]
