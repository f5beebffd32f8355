"""The next prompt, part by part in the order in which a model reads it, each with its reason and tokens."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from langchain_core.messages import HumanMessage

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import number, plural, render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.svg_charts import BarSegment, bar
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.manifests.parts import PROMPT_PARTS, PromptPart
from langchain_supabase_memory.settings import INHERITED
from langchain_supabase_memory.values import RECALL_SCOPES, RecallScope

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_core.messages import BaseMessage
    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.report import Section
    from langchain_supabase_memory.language.messages.blocks import PromptEntry
    from langchain_supabase_memory.settings import ContextBudget, Inherited

MIN_BUDGET: Final = 50
MAX_BUDGET: Final = 400_000
"""The minimum and maximum of a budget that may be tried."""

MAX_LINES: Final = 200
"""The maximum number of messages shown of a part, the newest; the rest is on the timeline."""

_PARTS: Final[Mapping[str, PromptPart]] = {each.name: each for each in PROMPT_PARTS}
UNITS: Final = ("characters", "tokens")


@dataclass(frozen=True)
class ShownPart:
    """A part of the prompt.

    Attributes:
        name: `summary` (or `note`), `recent`, `board`, `recalled` or `current`.
        tokens: Its approximate tokens.
        characters: Its characters.
        covers: What it covers.
        why: The reason it is there, in sentences.
        raw: The text that the model reads, if it is ours.
        lines: Its newest messages: number, speaker, text.
        unshown: How many earlier messages are not shown.
    """

    name: str
    tokens: int
    characters: int
    covers: str
    why: str
    raw: str = ""
    lines: list[tuple[int | None, str, str]] = field(default_factory=list)
    unshown: int = 0

    @property
    def state(self) -> str:
        """The name of its color."""
        return _PARTS[self.name].state

    @property
    def title(self) -> str:
        """The title of the part."""
        return _PARTS[self.name].title


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
        sizes = {unit: self.size if unit == self.unit else None for unit in UNITS}
        return replace(default, characters=sizes["characters"], tokens=sizes["tokens"])

    @property
    def scope(self) -> RecallScope | Inherited | None:
        """The scope of recall."""
        if self.recall == "none":
            return None
        return next((each for each in RECALL_SCOPES if each == self.recall), INHERITED)


async def screen(request: Request) -> Response:
    """Render the prompt after the newest message, for a chosen question, budget and recall. Nothing is stored."""
    context = RequestContext(request)
    options, conversation = PromptOptions.from_query(context), context.conversation()
    budget = options.budget(context.memory._services.settings.budget)
    current = HumanMessage(options.question) if options.question else None
    load = conversation.acontext(current, budget=budget, recall=options.scope, model=None)
    head, pack = await gather_all(conversation_header.load_header(context), load)
    report = pack.report()
    parts = parts_of(pack)
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
        spent=_spent(parts, report.used, limit, unit),
        sent_bar=bar([("verbatim", report.tokens, plural(report.tokens, "token"), "")], report.full_tokens),
        full_bar=bar([("own", report.full_tokens, plural(report.full_tokens, "token"), "")]),
        copied=json.dumps(report.to_dict(), indent=2, ensure_ascii=False),
        scopes=RECALL_SCOPES,
    )


def parts_of(pack: ContextPack) -> list[ShownPart]:
    """Return the parts of a prompt in the order in which a model reads them."""
    texts = {
        "note": pack.fitted.head_message,
        "summary": pack.fitted.head_message,
        "board": pack.board.message,
        "recalled": pack.remembered.message,
    }
    return [_part(pack, section, texts.get(section.name)) for section in pack.sections if section.messages]


def _part(pack: ContextPack, section: Section, message: BaseMessage | None) -> ShownPart:
    name = section.name
    entries = {"recent": pack.fitted.recent, "current": pack.fitted.current}.get(name, [])
    raw = "" if message is None else str(message.text)
    lines, unshown = [_line(entry) for entry in entries[-MAX_LINES:]], max(0, len(entries) - MAX_LINES)
    return ShownPart(name, section.tokens, section.characters, section.covers, _why(pack, name), raw, lines, unshown)


def _line(entry: PromptEntry) -> tuple[int | None, str, str]:
    message = entry.message
    text = str(message.text) or content.line(message)
    return (entry.sequences[0] if entry.sequences else None), content.LABELS[content.role(message)], text


def _why(pack: ContextPack, name: str) -> str:
    summary = pack.summary
    match name:
        case "summary" if summary is not None:
            built = f", built on segment {summary.built_on}" if summary.built_on is not None else ""
            note = f" It ends with: {pack.note}." if pack.note else ""
            return (
                f"Segment {summary.number}{built}. It comes first and stays the same from turn to turn, so that the "
                f"provider can cache it.{note}"
            )
        case "note":
            return "No summary covers the omitted messages, so the prompt says that there are more."
        case "recent":
            cut = f" {plural(len(pack.clipped), 'message')} truncated to fit." if pack.clipped else ""
            return f"Messages that the summary does not cover: as many of the newest whole turns as fit.{cut}"
        case "board":
            left = pack.board.left_out
            rest = f" {plural(left, 'item')} did not fit." if left else ""
            return f"What is known so far: pinned items first, then open items, then facts by importance.{rest}"
        case "recalled":
            how = f" By keyword search only: {pack.recall_error}." if pack.recall_error else ""
            return (
                f"Passages that match the question and are not in the prompt already, best first, as many as fit.{how}"
            )
    return "The message to answer. It is never truncated and comes last."


def _spent(parts: Sequence[ShownPart], used: int, limit: int, unit: str) -> list[BarSegment]:
    """Return the budget's bar in the order of the prompt. The sizes of the parts are approximate; the sum is exact."""
    sizes = [part.tokens if unit == "tokens" else part.characters for part in parts]
    scale = used / sum(sizes) if sum(sizes) else 0
    named = [
        (part.state, size * scale, f"{part.title}: {number(size)} {unit}", f"#part-{part.name}")
        for part, size in zip(parts, sizes, strict=True)
    ]
    return bar([*named, ("rest", max(0, limit - used), f"unused: {number(max(0, limit - used))} {unit}", "")])
