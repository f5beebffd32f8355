"""A context pack as terminal text: its cost, and each part with its size, its reason and its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text

from langchain_supabase_memory.cli.text_layout import STYLE_BOLD, STYLE_DIM, TextLayout
from langchain_supabase_memory.cli.transcript import Transcript
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.messages.invisible import legible, spell_out

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from langchain_supabase_memory.context.next_prompt import NextPart
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.report import ContextReport
    from langchain_supabase_memory.values import ConversationInfo


def print_pack(pack: ContextPack, parts: Sequence[NextPart], info: ConversationInfo, console: Console) -> None:
    """Print a pack.

    Args:
        pack: The pack.
        parts: Its parts, in order.
        info: The conversation.
        console: The output console.
    """
    layout, report = TextLayout(console), pack.report()
    Transcript(console).heading(info)
    layout.blank()
    layout.text(_cost(report), style=STYLE_BOLD)
    layout.text(f"Budget of {report.budget}: {report.used:,} used.", style=STYLE_DIM)
    for part in parts:
        section = part.section
        layout.blank()
        size = f"{pluralize(section.characters, 'character')}, {pluralize(section.tokens, 'token')}"
        layout.text(Text.assemble((part.title, STYLE_BOLD), (f"  {size}", STYLE_DIM)))
        layout.text(f"{_covers(section.covers)}{part.why}", indent=2, style=STYLE_DIM)
        if part.text:
            layout.text(legible(part.text), indent=2)
        for sequence, speaker, text in part.lines:
            number = "" if sequence is None else f"  [{sequence}]"
            layout.text(Text.assemble(speaker, (number, STYLE_DIM)), indent=2)
            layout.text(legible(text), indent=4)
    if not parts:
        layout.text("Nothing would be sent. The conversation has no messages yet.")
    if report.omitted:
        layout.blank()
        layout.text("Not sent", style=STYLE_BOLD)
    for first, last, why in report.omitted:
        numbers = f"message {first}" if first == last else f"messages {first} to {last}"
        layout.text(f"{numbers}: {spell_out(why)}", indent=2)
    if report.nothing_fits:
        layout.blank()
        layout.text("Nothing that recall found fits the question.", style=STYLE_DIM)


def _cost(report: ContextReport) -> str:
    tokens = pluralize(report.tokens, "token")
    if report.saved_tokens <= 0:
        return f"The whole conversation would be sent: {tokens}."
    full = f"{report.full_tokens:,} for all {pluralize(report.full_messages, 'message')}"
    return f"{tokens} would be sent instead of {full}."


def _covers(covers: str) -> str:
    return f"{covers[:1].upper()}{spell_out(covers[1:])}. " if covers else ""
