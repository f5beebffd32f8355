"""Tool results and tool errors: an error has a hint, and no user content."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Annotated, Any, Final

from mcp.types import CallToolResult, TextContent
from pydantic import BaseModel, ValidationError

from langchain_supabase_memory.adapters.telemetry.logs import error_fields
from langchain_supabase_memory.agents.tools.output_limit import note
from langchain_supabase_memory.errors import (
    AccessError,
    AuthenticationError,
    SchemaError,
    SupabaseMemoryError,
    UnavailableError,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from langchain_supabase_memory.memory.health import HealthTracker

_logger = logging.getLogger(__name__)


class Source(BaseModel):
    """Where a part of a result is from, without its words."""

    conversation_id: str
    agent_id: str | None = None
    from_sequence: int | None = None
    to_sequence: int | None = None
    message_ids: list[str] | None = None


class ToolAnswer(BaseModel):
    """What a tool gives: a fenced text, and where its parts are from."""

    text: str
    sources: list[Source]


ToolReply = Annotated[CallToolResult, ToolAnswer]
"""The return type of tools: the text for the model, and the text with its sources for a program."""

_NEXT: Final[tuple[tuple[type[SupabaseMemoryError], str], ...]] = (
    (AuthenticationError, "Ask the person to sign in again in the client, then repeat the call."),
    (AccessError, "Ask the person who runs this server to look at the rights of its key."),
    (SchemaError, "Ask the person who runs this server to run `supabase-memory migrate`."),
    (UnavailableError, "Repeat the call in a moment; until then go on without the memory."),
)
"""Hints for clients, where the error's own hint is for a programmer."""

# The scores are only for programs: in the schema of every tool a model would read them at every request.
_KEPT: Final = (*Source.model_fields, "score", "score_parts")


def reply(text: str, sources: Iterable[Mapping[str, Any]] = ()) -> CallToolResult:
    """Return a tool result.

    Args:
        text: The text for the model, fenced.
        sources: The sources of its parts, as agents' tools return them.
    """
    given = {"text": text, "sources": [_source(each) for each in sources]}
    return CallToolResult(content=[TextContent(type="text", text=text)], structured_content=given)


def failure(name: str, error: BaseException, causes: HealthTracker) -> CallToolResult:
    """Return the result of a failed tool.

    Args:
        name: The tool.
        error: The error.
        causes: Tracks which failures were already logged.
    """
    text = note(error_text(name, error, causes))
    return CallToolResult(content=[TextContent(type="text", text=text)], is_error=True)


def error_text(name: str, error: BaseException, causes: HealthTracker) -> str:
    """Describe a failure: what went wrong and a hint. Failures that are not the caller's mistake are logged.

    Args:
        name: What failed.
        error: The error.
        causes: Tracks which failures were already logged.
    """
    if isinstance(error, ValidationError):
        return _is_refusal(error)
    if not isinstance(error, SupabaseMemoryError):
        # The error's text may contain content, its class does not.
        kind = type(error).__name__
        level = causes.level(f"{name} over MCP", error, logging.ERROR, repeats=True)
        _logger.log(level, "%s failed (%s). Please report this.", name, kind, extra={"memory_error": kind})
        return f"The memory failed ({kind}). Go on without it, and tell the person who runs this server."
    action = next((words for kind, words in _NEXT if isinstance(error, kind)), None)
    if action is not None:
        level = causes.level("An answer over MCP", error, logging.WARNING, repeats=True)
        _logger.log(level, "%s failed: %s", name, error, extra=error_fields(error))
    # Codes are for programs, so the text leaves them out.
    return f"{error.message} {error.hint if action is None else action}".rstrip()


def _is_refusal(error: ValidationError) -> str:
    """Describe what is wrong with the arguments, without their values."""
    wrong = [f"{'.'.join(map(str, each['loc'][:1]))}: {each['msg']}" for each in error.errors(include_input=False)]
    return f"The arguments are wrong. {'; '.join(wrong)}"[:1_000]


def _source(source: Mapping[str, Any]) -> dict[str, Any]:
    named = {"conversation_id": source.get("thread_id"), **source}
    return {name: named[name] for name in _KEPT if named.get(name) is not None}
