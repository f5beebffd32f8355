"""The prompts of earlier answers, each with its question and its answer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import number, render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.svg_charts import BarSegment, bar
from langchain_supabase_memory.operations.manifests.parts import PROMPT_PARTS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.operations.manifests.manifest import Manifest

PAGE: Final = 25
"""The number of prompts on a page."""

STATES: Final[Mapping[str, str]] = {part.name: part.state for part in PROMPT_PARTS}
"""The color of each part."""


def spent(manifest: Manifest) -> list[BarSegment]:
    """Return the parts of a prompt in order, in tokens, and what was left of a budget in tokens."""
    parts = [
        (STATES.get(part.name, "own"), part.tokens, f"{part.name}: {number(part.tokens)} tokens", "")
        for part in manifest.parts
    ]
    if manifest.unit == "tokens":
        parts.append(("rest", manifest.unspent, f"unused: {number(manifest.unspent)} tokens", ""))
    return bar(parts)


async def screen(request: Request) -> Response:
    """Render the stored prompts with their questions and answers, the newest first."""
    context = RequestContext(request)
    conversation = context.conversation()
    after = context.query.get("after") or None
    head, page = await gather_all(
        conversation_header.load_header(context), conversation.amanifests(limit=PAGE, after=after)
    )
    answers = [each.to_sequence for each in page.manifests if each.to_sequence is not None]
    turns = await conversation.turns.alist(last=2 * PAGE, before=max(answers) + 1) if answers else []
    return render_page(
        context,
        "prompts.html",
        tab="prompts",
        etag=head.etag,
        about="" if after else "conversation",
        header=head,
        page=page,
        spent=spent,
        turns={turn.from_sequence: turn for turn in turns},
    )
