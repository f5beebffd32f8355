"""The next prompt as a person looks at it: the agent's own budget, and each part with its words and its reason."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final, TypeAlias

from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages import content
from langchain_supabase_memory.operations.manifests.parts import PART_REASONS, PROMPT_PARTS
from langchain_supabase_memory.settings import INHERITED
from langchain_supabase_memory.values import RECALL_SCOPES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.report import Section
    from langchain_supabase_memory.operations.manifests.manifest import Manifest
    from langchain_supabase_memory.operations.manifests.parts import PromptPart
    from langchain_supabase_memory.settings import ContextBudget, Inherited
    from langchain_supabase_memory.values import RecallScope

UNITS: Final = ("characters", "tokens")
"""The units of a budget."""

PARTS: Final[Mapping[str, PromptPart]] = {each.name: each for each in PROMPT_PARTS}
"""The parts of a prompt by name."""

Line: TypeAlias = "tuple[int | None, str, str]"
"""A message as a line: its number, its speaker, its text."""


@dataclass(frozen=True)
class NextPart:
    """A part of the next prompt.

    Attributes:
        section: Its name, its size and what it covers.
        title: Its title.
        why: The reason why it is there, in sentences.
        text: What the model reads of it, if it is no part of the conversation itself.
        lines: Its messages, if it is.
    """

    section: Section
    title: str
    why: str
    text: str = field(default="", repr=False)
    lines: list[Line] = field(default_factory=list, repr=False)


def next_parts(pack: ContextPack) -> list[NextPart]:
    """Return the parts of the next prompt in the order in which a model reads them."""
    messages = {
        "note": pack.fitted.head_message,
        "summary": pack.fitted.head_message,
        "board": pack.board.message,
        "recalled": pack.remembered.message,
        "profile": pack.profile.message,
        "shared": pack.shared.message,
    }
    entries = {"recent": pack.fitted.recent, "current": pack.fitted.current}
    parts = []
    for section in pack.sections:
        if not section.messages:
            continue
        name, message = section.name, messages.get(section.name)
        parts.append(
            NextPart(
                section,
                PARTS[name].title if name in PARTS else name,
                reason_of(pack, name),
                "" if message is None else str(message.text),
                [line_of(next(iter(each.sequences), None), each.message) for each in entries.get(name, [])],
            )
        )
    return parts


def line_of(sequence: int | None, message: BaseMessage) -> Line:
    """Return a message as a line.

    Args:
        sequence: Its number; `None` if it is not stored.
        message: The message.
    """
    return sequence, content.LABELS[content.role(message)], str(message.text) or content.line(message)


def budget_of(newest: Manifest | None, default: ContextBudget) -> ContextBudget:
    """Return the budget of the newest prompt, which is the agent's own.

    Args:
        newest: The manifest of the newest answer; without one it is the memory's budget.
        default: The memory's budget, which has the shares of the parts.
    """
    if newest is None or newest.budget < 1 or newest.unit not in UNITS:
        return default
    return resized(default, newest.budget, newest.unit)


def resized(budget: ContextBudget, size: int, unit: str) -> ContextBudget:
    """Return a budget with another size.

    Args:
        budget: The budget.
        size: The size.
        unit: Its unit, one of `UNITS`.
    """
    sizes = {each: size if each == unit else None for each in UNITS}
    if (budget.characters, budget.tokens) == (sizes["characters"], sizes["tokens"]):
        return budget
    return replace(budget, characters=sizes["characters"], tokens=sizes["tokens"])


def recall_scope_of(newest: Manifest | None) -> RecallScope | Inherited | None:
    """Return the scope of recall of the newest prompt, which is the agent's own.

    Args:
        newest: The manifest of the newest answer; without one it is the memory's scope.
    """
    return INHERITED if newest is None else recall_scope_named(newest.recall)


def recall_scope_named(name: str | None) -> RecallScope | Inherited | None:
    """Return the scope of recall that a name stands for.

    Args:
        name: A scope; `none` for no recall; anything else for the memory's own.
    """
    if name == "none":
        return None
    return next((each for each in RECALL_SCOPES if each == name), INHERITED)


def reason_of(pack: ContextPack, name: str) -> str:
    """Return why a part is in a pack, in sentences.

    Args:
        pack: The pack.
        name: The part's name.
    """
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
            cut = f" {pluralize(len(pack.clipped), 'message')} truncated to fit." if pack.clipped else ""
            return f"Messages that the summary does not cover: as many of the newest whole turns as fit.{cut}"
        case "board":
            left = pack.board.left_out
            rest = f" {pluralize(left, 'item')} did not fit." if left else ""
            return f"What is known so far: pinned items first, then open items, then facts by importance.{rest}"
        case "recalled":
            how = f" By keyword search only: {pack.recall_error}." if pack.recall_error else ""
            return (
                f"Passages that match the question and are not in the prompt already, best first, as many as fit.{how}"
            )
        case "profile":
            return PART_REASONS["held"]
        case "shared":
            return PART_REASONS["shared"]
    return "The message to answer. It is never truncated and comes last."
