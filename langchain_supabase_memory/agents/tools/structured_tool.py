"""Tools as LangChain and LangGraph run them: what a graph tells a call, and arguments that are wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.prebuilt import ToolRuntime

from langchain_supabase_memory import effects
from langchain_supabase_memory.agents.run.identity import current_run
from langchain_supabase_memory.agents.tools import output_limit
from langchain_supabase_memory.agents.tools.binding import Answer, ToolCall, run_reporting
from langchain_supabase_memory.language.messages.content import is_conversation

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel

    from langchain_supabase_memory.agents.tools.binding import Binding
    from langchain_supabase_memory.effects import Effects, Flow


def structured_tool(
    name: str, description: str, schema: type[BaseModel], binding: Binding, answer: Callable[..., Flow[Answer]]
) -> BaseTool:
    """Create a sync and async tool that runs a flow. The arguments are those of `binding.tool`."""
    first = next(iter(schema.model_fields))

    def run_call(runtime: object, names: tuple[str, ...], arguments: dict[str, Any]) -> Effects[Answer]:
        with run_reporting(name, binding):
            if names:  # a plain string is the first argument
                arguments = schema.model_validate({first: names[0]}).model_dump()
            is_first = _is_first(name, runtime)
            request = ToolCall(binding, *current_run(), _current_config(runtime), is_first=is_first)
            flow = answer(request, **arguments)
            return (yield from effects.in_one_step(flow, binding.memory._services))

    # The default makes `runtime` optional for direct calls; the annotation hides it from the model.
    def run(*words: str, runtime: ToolRuntime[Any, Any] = None, **arguments: Any) -> Answer:  # type: ignore[assignment]
        return effects.run(run_call(runtime, words, arguments))

    async def arun(*words: str, runtime: ToolRuntime[Any, Any] = None, **arguments: Any) -> Answer:  # type: ignore[assignment]
        return await effects.arun(run_call(runtime, words, arguments))

    return StructuredTool(
        name=name,
        description=description,
        args_schema=schema,
        func=run,
        coroutine=arun,
        response_format="content_and_artifact",
        handle_tool_error=lambda error: output_limit.note(str(error)),
        handle_validation_error=_refusal,
    )


def _refusal(error: Any) -> str:
    """Describe what is wrong with the arguments, without their values."""
    wrong = [f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()]
    return output_limit.note(f"The arguments are wrong. {'; '.join(wrong)}"[:1_000])


def _current_config(runtime: object) -> frozenset[str]:
    """Return the ids of the current turn's messages: the newest human message and all after it."""
    state = runtime.state if isinstance(runtime, ToolRuntime) else None
    listed = state if isinstance(state, list) else _messages(state)
    ids: list[str] = []
    for message in reversed(listed):
        ids += [message.id] if getattr(message, "id", None) else []
        if isinstance(message, HumanMessage) and is_conversation(message):
            return frozenset(ids)
    return frozenset()


def _is_first(name: str, runtime: object) -> bool:
    """Return whether no other call of the tool precedes this one in the model's newest message."""
    if not isinstance(runtime, ToolRuntime):
        return True
    state = runtime.state
    listed = state if isinstance(state, list) else _messages(state)
    newest = next((each for each in reversed(listed) if isinstance(each, AIMessage)), None)
    ids = [] if newest is None else [each["id"] for each in newest.tool_calls if each["name"] == name]
    return runtime.tool_call_id not in ids[1:]


def _messages(state: object) -> list[Any]:
    messages = state.get("messages") if isinstance(state, dict) else getattr(state, "messages", None)
    return messages if isinstance(messages, list) else []
