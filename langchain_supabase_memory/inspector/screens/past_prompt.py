"""The prompt of one earlier answer, drawn as the next prompt is, and why it did not know something."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import NotFoundError
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.screens.message_range import text_of
from langchain_supabase_memory.inspector.screens.prompt_parts import past_parts, spent_bar
from langchain_supabase_memory.inspector.screens.prompts import STATES
from langchain_supabase_memory.inspector.svg_charts import bar
from langchain_supabase_memory.operations.manifests.beginning import MOVES
from langchain_supabase_memory.operations.manifests.parts import PART_REASONS
from langchain_supabase_memory.operations.recall.exact_search import LONGEST

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.context.explanation import Explanation, ExplanationPart
    from langchain_supabase_memory.operations.manifests.manifest import Manifest

_ON_THIS_PAGE: Final = {
    "verbatim": "#part-recent", "cut": "#part-recent", "recalled": "#part-recalled", "reference": "#part-reference",
    "summary": "#part-summary", "left_out": "#out", "budget": "#cost",
}  # fmt: skip
"""The section of the page that is the evidence of a part of an explanation."""


async def screen(request: Request) -> Response:
    """Render the prompt of one answer: a permanent link, by the number of the answer."""
    context = RequestContext(request)
    conversation, answer = context.conversation(), context.number("answer")
    if answer is None:
        raise _no_prompt()
    head, page, replies = await gather_all(
        conversation_header.load_header(context),
        conversation.amanifests(limit=2, to_sequence=answer),
        conversation.aread(from_sequence=answer, to_sequence=answer, columns=["role", "text", "payload"]),
    )
    if not page.manifests or page.manifests[0].to_sequence != answer:
        raise _no_prompt()
    manifest, *before = page.manifests
    rebuilt = await conversation.aprompt(manifest)
    expected = context.query.get("expected", "").strip()[:LONGEST]
    explanation = await conversation.awhy(manifest, expected) if expected else None
    parts = past_parts(rebuilt)
    questions = [part for part in parts if part.name == "current"] or [part for part in parts if part.name == "recent"]
    return render_page(
        context,
        "turn.html",
        tab="prompts",
        header=head,
        manifest=manifest,
        question=questions[0].lines[0 if questions[0].name == "current" else -1][2]
        if questions and questions[0].lines
        else "",
        reply=text_of(replies[0]) if replies else "",
        parts=parts,
        before=before[0] if before else None,
        difference=manifest.since(before[0]) if before else None,
        moves=MOVES,
        spent=spent_bar(parts, manifest.used, manifest.budget, manifest.unit),
        sent_bar=bar([("verbatim", manifest.tokens, pluralize(manifest.tokens, "token"), "")], manifest.full_tokens),
        full_bar=bar([("own", manifest.full_tokens, pluralize(manifest.full_tokens, "token"), "")]),
        beside=_tokens_beside(manifest),
        states=STATES,
        why=PART_REASONS,
        expected=expected,
        explained=[]
        if explanation is None
        else [(part, _address(context, explanation, part)) for part in explanation.parts],
        explanation=explanation,
        copied=json.dumps(manifest.to_dict(), indent=2, ensure_ascii=False),
    )


def _tokens_beside(manifest: Manifest) -> int | None:
    """Return how many input tokens the model counted beside the memory's parts; `None` if the answer does not say."""
    counted = None if manifest.usage is None else manifest.usage.input_tokens
    return None if counted is None else max(0, counted - manifest.tokens)


def _address(context: RequestContext, explanation: Explanation, part: ExplanationPart) -> str:
    """Return the address of a part's evidence."""
    key = part.key
    if part.item is not None:
        if part.kind == "profile":
            return context.link("/profile/item", item=part.item, **context.owner_query)
        return context.page_link("/board/item", item=part.item)
    if part.kind in _ON_THIS_PAGE:
        return _ON_THIS_PAGE[part.kind]
    if part.kind == "not_recalled":
        here = context.conversation()._key
        return context.link(
            "/recall",
            agent=here.agent_id,
            thread=here.thread_id,
            q=explanation.question or explanation.expected,
            scope=explanation.manifest.recall if explanation.manifest.recall != "none" else None,
            **context.owner_query,
        )
    if part.kind == "never":
        return context.link("/search", q=explanation.expected, **context.owner_query)
    if key is None or part.first is None:
        return context.page_link("/board" if part.kind == "board" else "")
    address = context.conversation_link("", key.user_id, key.agent_id, key.thread_id, at=part.first)
    return f"{address}#m{part.first}"


def _no_prompt() -> NotFoundError:
    return NotFoundError(
        "No prompt is stored for this answer.", hint="Prompts are deleted with their messages, or when they expire."
    )
