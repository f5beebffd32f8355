"""Metrics of a memory, an HTTP endpoint for them, and the cost of prompts per turn."""

from langchain_supabase_memory.adapters.telemetry.metrics import Metrics
from langchain_supabase_memory.adapters.telemetry.server import MetricsServer
from langchain_supabase_memory.context.growth import prompt_growth

__all__ = [
    "Metrics",
    "MetricsServer",
    "prompt_growth",
]
