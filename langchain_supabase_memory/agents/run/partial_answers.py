"""Partial answers: store what a model streamed before it was stopped or failed, if the application opts in.

LangGraph stops an async run at its current await, and a sync run when its model call ends: then the answer is complete,
but no hook is called with it. So a streamed answer is held here until a graph state contains it.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID, uuid4

from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGenerationChunk
from langchain_core.runnables.config import ensure_config, var_child_runnable_config

from langchain_supabase_memory import effects
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.memory.outbox_delivery import flush_and_append
from langchain_supabase_memory.operations import conversations

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.agents.run.graph_state import GraphState
    from langchain_supabase_memory.effects import Effects
    from langchain_supabase_memory.values import ConversationKey

_MAX_CACHED: Final = 1_000
"""How many answers, and how many conversations' partial answers, this process remembers."""

_HELPER_MARKS: Final = (content.LC_SOURCE, "lc_internal_call")
"""The keys by which middleware marks a call of a helper model in its metadata: LangChain's own has either or both."""

_UNFORGOTTEN: Final = GuardedTask("A partial answer could not be replaced by the complete one; it remains")


class StreamedPieces(BaseCallbackHandler):
    """Collect the text that the model streams in its newest call."""

    run_inline = True

    def __init__(self) -> None:
        self._run: UUID | None = None
        self._texts: list[str] = []
        self._name: str | None = None

    def on_chat_model_start(
        self, serialized: Any, messages: Any, *, run_id: UUID, metadata: dict[str, Any] | None = None, **_: Any
    ) -> None:
        """Start over for the agent's model; calls by helper models, such as the summarizer, are marked and ignored."""
        if not any((metadata or {}).get(mark) for mark in _HELPER_MARKS):
            self._run, self._texts, self._name = run_id, [], None

    def on_llm_new_token(self, token: Any, *, chunk: Any = None, run_id: UUID, **_: Any) -> None:
        """Collect a piece."""
        if run_id != self._run:
            return
        if isinstance(chunk, ChatGenerationChunk):
            self._name = self._name or chunk.message.id
            token = str(chunk.message.text)
        if isinstance(token, str) and token:
            self._texts.append(token)

    def on_stream_event(self, event: Any, *, run_id: UUID, **_: Any) -> None:
        """Collect a piece in the newer streaming format."""
        delta = event.get("delta") if isinstance(event, dict) else None
        if run_id == self._run and isinstance(delta, dict) and delta.get("type") == "text-delta":
            self._texts.append(str(delta.get("text") or ""))

    @property
    def answer(self) -> AIMessage | None:
        """The streamed text, marked as partial; `None` if it is blank."""
        text = "".join(self._texts)
        return content.partial(text, self._name or f"partial_{uuid4()}") if text.strip() else None


class PartialAnswers:
    """Store the streamed part of answers that never reach a graph state.

    Args:
        guard: Handles failures of the memory.
    """

    def __init__(self, guard: FailOpen) -> None:
        self._guard = guard
        self._lock = threading.Lock()
        self._streamed: OrderedDict[ConversationKey, AIMessage] = OrderedDict()  # until a state contains it
        self._stored: OrderedDict[tuple[ConversationKey, str | None], str] = OrderedDict()  # by the question's id
        self._tasks: set[asyncio.Task[None]] = set()

    def keeping(self, key: ConversationKey, run: GraphState, call: Callable[[], Any]) -> Callable[[], Any]:
        """Wrap a model call to store the streamed part if the call does not finish.

        Args:
            key: The conversation.
            run: The messages of the call.
            call: Calls the model and returns the answer, or an awaitable of it.
        """
        asked = run.messages[-1].id if run.messages else None

        def answer() -> Any:
            pieces = StreamedPieces()
            token = var_child_runnable_config.set(_heard_by(pieces))
            try:
                made = call()
            except BaseException:
                with suppress(SupabaseMemoryError):
                    effects.run(self._keep(key, asked, pieces.answer))
                raise
            finally:
                var_child_runnable_config.reset(token)
            if isawaitable(made):
                return self._awaited(key, asked, pieces, made)
            effects.run(self._ended(key, asked, pieces, made.result))
            return made

        return answer

    def settle(self, key: ConversationKey, run: GraphState) -> Effects[None]:
        """Store the answer that was streamed last, if its run was stopped before a state contained it.

        Args:
            key: The conversation.
            run: The state.
        """
        with self._lock:
            streamed = self._streamed.pop(key, None)
        if streamed is not None and all(message.id != streamed.id for message in run.messages):
            yield from self._keep(key, None, streamed)

    async def _awaited(
        self, key: ConversationKey, question_id: str | None, pieces: StreamedPieces, answer: Awaitable[Any]
    ) -> Any:
        token = var_child_runnable_config.set(_heard_by(pieces))
        try:
            made = await answer
        except GeneratorExit:  # awaiting is not allowed here
            raise
        except BaseException:
            # A separate task, so that another cancellation does not reach it; `deadline_seconds` limits it.
            task = asyncio.create_task(effects.arun(self._keep(key, question_id, pieces.answer)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
            with suppress(asyncio.CancelledError, SupabaseMemoryError):
                await asyncio.shield(task)
            raise
        finally:
            var_child_runnable_config.reset(token)
        await effects.arun(self._ended(key, question_id, pieces, made.result))
        return made

    def _keep(self, key: ConversationKey, question_id: str | None, answer: AIMessage | None) -> Effects[None]:
        """Store a partial answer."""
        if answer is None:
            return
        # Stored without the marker of a graph's state: no state contains it, and it must not be removed for that.
        task = GuardedTask("A partial answer could not be stored; it waits in the outbox", [answer])
        yield from self._guard.attempt(
            flush_and_append(self._guard.memory._services, key, [answer], replace=False), task, key
        )
        with self._lock:
            self._stored[key, question_id] = str(answer.id)
            _evict(self._stored)

    def _ended(
        self, key: ConversationKey, question_id: str | None, pieces: StreamedPieces, messages: Sequence[BaseMessage]
    ) -> Effects[None]:
        """Hold a complete answer until a state contains it, and delete a partial answer to the same question."""
        partial = pieces.answer
        whole = next((each for each in messages if isinstance(each, AIMessage)), None)
        # Without a user id, the next run of this thread may be another user's.
        is_named = key.user_id is not None or not self._guard.memory._services.transport.identity_is_callback
        with self._lock:
            before = self._stored.pop((key, question_id), None)
            if is_named and partial and whole is not None and whole.id is not None and not whole.tool_calls:
                self._streamed[key] = content.partial(str(whole.text), whole.id)
                _evict(self._streamed)
        if before is not None and all(each.id != before for each in messages):
            yield from self._guard.attempt(conversations.forget_message(key, before), _UNFORGOTTEN, key)


def _heard_by(pieces: StreamedPieces) -> Any:
    """Return the run's configuration with a callback added that collects the streamed text."""
    config = ensure_config()
    before = config.get("callbacks")
    if isinstance(before, BaseCallbackManager):
        callbacks: Any = before.copy()
        callbacks.add_handler(pieces, inherit=True)
    else:
        callbacks = [*(before or ()), pieces]
    return {**config, "callbacks": callbacks}


def _evict(cache: OrderedDict[Any, Any]) -> None:
    while len(cache) > _MAX_CACHED:
        cache.popitem(last=False)
