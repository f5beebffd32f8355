"""Drafts: answers of a model that another question follows before anything is stored.

A message that is longer than a model's input is summarized part by part, and a summary that came out too long is asked
for once more; only the last answer is committed. The others are kept beside the lease, so that a worker that goes on
after another was killed repeats the question that was under way, and not those that were answered.
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
    """Run a flow with what an earlier try was answered already, and keep what this one is answered.

    Args:
        flow: A fresh flow.
        lease: What it is done for.
        model: The name of the model that is asked.

    Returns:
        What the flow returns.
    """
    return named_like(_with_cached_answers(flow, lease, model), flow)


def _with_cached_answers(flow: Flow[T], lease: Lease, model: str) -> Flow[T]:
    asked = ""  # the digest of the question before
    said: str | None = None  # what the model answered it; `None` for a draft
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
            if isinstance(step, Offload):  # of the answer: whether it can be used
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
    """Of a question, as it is put to a model of this name."""
    shown = [model, *([each.type, each.content] for each in ask.prompt)]
    return hashlib.sha256(json.dumps(shown, default=str).encode()).hexdigest()
