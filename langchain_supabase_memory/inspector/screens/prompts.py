"""The prompts of earlier answers: their parts, reasons and words, and the difference from the previous one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context.past_prompt import CHANGES
from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import number, render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.svg_charts import BarSegment, bar
from langchain_supabase_memory.operations.manifests.beginning import MOVES
from langchain_supabase_memory.operations.manifests.parts import PART_REASONS, PROMPT_PARTS

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
    """Return the parts of a prompt in order, in tokens."""
    return bar(
        (STATES.get(part.name, "own"), part.tokens, f"{part.name}: {number(part.tokens)} tokens", "")
        for part in manifest.parts
    )


async def screen(request: Request) -> Response:
    """Render the stored prompts, the newest first."""
    context = RequestContext(request)
    conversation = context.conversation()
    after = context.query.get("after") or None
    head, page = await gather_all(
        conversation_header.load_header(context), conversation.amanifests(limit=PAGE, after=after)
    )
    return render_page(
        context,
        "prompts.html",
        tab="prompts",
        etag=head.etag,
        about="" if after else "conversation",
        header=head,
        page=page,
        spent=spent,
    )


async def turn(request: Request) -> Response:
    """Render the prompt of one answer: a permanent link, by the number of the answer."""
    context = RequestContext(request)
    conversation, answer = context.conversation(), context.number("answer")
    if answer is None:
        raise _no_prompt()
    head, page = await gather_all(
        conversation_header.load_header(context), conversation.amanifests(limit=2, to_sequence=answer)
    )
    if not page.manifests or page.manifests[0].to_sequence != answer:
        raise _no_prompt()
    manifest, *before = page.manifests
    # A manifest identifies an item by a prefix of its id.
    rebuilt = await conversation.aprompt(manifest)
    board = await conversation.board.aread(history=True) if manifest.items else None
    items = {} if board is None else {item.id[:8]: item for item in board.items}
    return render_page(
        context,
        "turn.html",
        tab="prompts",
        header=head,
        manifest=manifest,
        before=before[0] if before else None,
        difference=manifest.since(before[0]) if before else None,
        moves=MOVES,
        spent=spent(manifest),
        states=STATES,
        why=PART_REASONS,
        items=items,
        rebuilt=rebuilt,
        changes=CHANGES,
        lost=sum(each not in items for each in manifest.items),
        copied=json.dumps(manifest.to_dict(), indent=2, ensure_ascii=False),
    )


def _no_prompt() -> NotFoundError:
    return NotFoundError(
        "No prompt is stored for this answer.", hint="Prompts are deleted with their messages, or when they expire."
    )
