"""The next prompt, part by part in the order in which a model reads it, each with its reason and tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from langchain_core.messages import HumanMessage

from langchain_supabase_memory.context.next_prompt import UNITS, budget_of, recall_scope_named, recall_scope_of, resized
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.screens.prompt_parts import next_parts, spent_bar
from langchain_supabase_memory.inspector.svg_charts import bar
from langchain_supabase_memory.values import RECALL_SCOPES, RecallScope

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.operations.manifests.manifest import Manifest
    from langchain_supabase_memory.settings import ContextBudget, Inherited

MIN_BUDGET: Final = 50
MAX_BUDGET: Final = 400_000
"""The minimum and maximum of a budget that may be tried."""


@dataclass(frozen=True)
class PromptOptions:
    """The options to try.

    Attributes:
        question: The user's message.
        size: The budget; `None` for the memory's.
        unit: The budget's unit.
        recall: The scope of recall; `none` for no recall; empty for the memory's own setting.
    """

    question: str = ""
    size: int | None = None
    unit: str = "characters"
    recall: str = ""

    @classmethod
    def from_query(cls, context: RequestContext) -> PromptOptions:
        """Parse the options of an address; invalid ones are ignored."""
        unit, recall = context.query.get("unit", ""), context.query.get("recall", "")
        return cls(
            context.query.get("question", "").strip()[:10_000],
            context.number("budget", minimum=MIN_BUDGET, maximum=MAX_BUDGET),
            unit if unit in UNITS else "characters",
            recall if recall in ("none", *RECALL_SCOPES) else "",
        )

    def budget(self, default: ContextBudget) -> ContextBudget:
        """Return the budget to try."""
        if self.size is None:
            return default
        return resized(default, self.size, self.unit)

    def scope(self, newest: Manifest | None) -> RecallScope | Inherited | None:
        """Return the scope of recall.

        Args:
            newest: The manifest of the newest answer, whose scope is the default; `None` for the memory's.
        """
        return recall_scope_named(self.recall) if self.recall else recall_scope_of(newest)


async def screen(request: Request) -> Response:
    """Render the prompt after the newest message, for a chosen question, budget and recall. Nothing is stored."""
    context = RequestContext(request)
    options, conversation = PromptOptions.from_query(context), context.conversation()
    head, newest = await gather_all(conversation_header.load_header(context), newest_manifest(conversation))
    budget = options.budget(budget_of(newest, context.memory._services.settings.budget))
    current = HumanMessage(options.question) if options.question else None
    pack = await conversation.acontext(current, budget=budget, recall=options.scope(newest), model=None)
    report = pack.report()
    parts = next_parts(pack)
    unit = "tokens" if budget.tokens is not None else "characters"
    limit = budget.tokens or budget.characters or 0
    return render_page(
        context,
        "prompt.html",
        tab="prompt",
        etag=head.etag,
        about="conversation",
        header=head,
        options=options,
        pack=pack,
        report=report,
        parts=parts,
        unit=unit,
        limit=limit,
        spent=spent_bar(parts, report.used, limit, unit),
        sent_bar=bar([("verbatim", report.tokens, pluralize(report.tokens, "token"), "")], report.full_tokens),
        full_bar=bar([("own", report.full_tokens, pluralize(report.full_tokens, "token"), "")]),
        copied=json.dumps(report.to_dict(), indent=2, ensure_ascii=False),
        scopes=RECALL_SCOPES,
        newest=newest,
    )


async def newest_manifest(conversation: Conversation) -> Manifest | None:
    """Return the manifest of the newest answer; `None` if none is stored."""
    return next(iter((await conversation.amanifests(limit=1)).manifests), None)
