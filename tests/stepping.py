"""Stepping a flow by hand: what it computes is computed, so that a test sees what it needs from outside."""

from __future__ import annotations

from typing import Any

from langchain_supabase_memory.effects import Flow, Offload, Step


def sent(flow: Flow[Any], answer: Any) -> Step:
    """Answer a step; the next one that is no computation."""
    step = flow.send(answer)
    while isinstance(step, Offload):
        step = flow.send(step.function())
    return step
