"""Drafts: model answers that are followed by another question before anything is stored.

A message longer than the model's input is summarized in parts, and a summary that is too long is requested again; only
the last answer is committed. The other answers are stored with the lease, so that a worker that takes over from a
killed one repeats only the interrupted question.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any, TypeVar

from langchain_core.messages import AIMessage

from langchain_supabase_memory.effects import Ask, Offload, named_like
from langchain_supabase_memory.language.messages import sanitizer
from langchain_supabase_memory.operations.work import keep_draft

if TYPE_CHECKING:
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.operations.work import Lease

T = TypeVar("T")


def with_cached_answers(flow: Flow[T], lease: Lease, model: str) -> Flow[T]:
    """Run a flow with the cached answers of an earlier attempt, and cache the new ones.

    Args:
        flow: A fresh flow.
        lease: The lease that the flow runs under.
        model: The model's name.

    Returns:
        The flow's result.
    """
    return named_like(_with_cached_answers(flow, lease, model), flow)


def _with_cached_answers(flow: Flow[T], lease: Lease, model: str) -> Flow[T]:
    asked = ""  # the digest of the previous question
    said: str | None = None  # the model's answer to it; `None` if it came from the cache
    try:
        step = next(flow)
        while True:
            digest = _digest(step, model) if isinstance(step, Ask) else ""
            is_again = digest == asked  # the flow could not use the answer
            if digest and said is not None and not is_again:
                yield from keep_draft(lease, asked, said)
            answer: Any
            try:
                answer = AIMessage(lease.drafts[digest]) if digest in lease.drafts and not is_again else (yield step)
            except Exception as error:
                asked, said = digest, None
                step = flow.throw(error)
                continue
            if isinstance(step, Offload):  # this step checks the answer
                step = flow.send(answer)
                continue
            said = None
            if digest and (is_again or digest not in lease.drafts):
                said = sanitizer.clean(str(answer.text))
            asked = digest
            step = flow.send(answer)
    except StopIteration as stop:
        result: T = stop.value
        return result
    finally:
        flow.close()


def _digest(ask: Ask, model: str) -> str:
    """Return the digest of a question to the model with this name."""
    shown = [model, *([each.type, each.content] for each in ask.prompt)]
    return hashlib.sha256(json.dumps(shown, default=str).encode()).hexdigest()
