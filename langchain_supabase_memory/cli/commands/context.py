"""`supabase-memory context`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from langchain_supabase_memory.cli.options import (
    agent_option,
    embeddings_option,
    json_option,
    user_option,
    with_database_options,
)

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.context.next_prompt import NextPart
    from langchain_supabase_memory.context.pack import ContextPack


@click.command()
@click.argument("thread")
@with_database_options
@user_option("Owner of the conversation")
@agent_option
@click.option("--question", help="The user's next message, for which passages are recalled.")
@click.option(
    "--budget",
    type=click.IntRange(50, 400_000),
    metavar="TOKENS",
    help="Budget in tokens; by default that of the newest answer's prompt.",
)
@embeddings_option
@json_option
def context(
    thread: str,
    address: Address,
    user_id: str,
    agent_id: str | None,
    question: str | None,
    budget: int | None,
    embeddings: str | None,
    as_json: bool,
) -> None:
    """Print what the next prompt would have, part by part, and why.

    Each part has its size and the reason why it is there, in the order in which a model reads it. Nothing is stored,
    and no model is asked.

    \b
    Examples:
      supabase-memory context studio --user maya --question "Which cone?"
      supabase-memory context studio --user maya --budget 500 --json
    """  # noqa: D301  # click reads the control character
    from langchain_core.messages import HumanMessage

    from langchain_supabase_memory.cli import message_pages, models
    from langchain_supabase_memory.cli.formatting import console, echo_json
    from langchain_supabase_memory.cli.pack_view import print_pack
    from langchain_supabase_memory.context.next_prompt import budget_of, next_parts, recall_scope_of, resized

    with address.open(model=None, embeddings=models.embedder(embeddings)) as memory:
        conversation, info = message_pages.find_conversation(memory, thread, user_id, agent_id)
        newest = next(iter(conversation.manifests(limit=1).manifests), None)
        limits = budget_of(newest, memory._services.settings.budget)
        pack = conversation.context(
            HumanMessage(question) if question and question.strip() else None,
            budget=limits if budget is None else resized(limits, budget, "tokens"),
            recall=recall_scope_of(newest),
            model=None,
        )
    parts = next_parts(pack)
    if as_json:
        echo_json(_document(pack, parts))
    else:
        print_pack(pack, parts, info, console())


def _document(pack: ContextPack, parts: list[NextPart]) -> dict[str, Any]:
    """Create the JSON document of a pack: its report, and each part with its reason and its words."""
    report = pack.report().to_dict()
    del report["sections"]
    return {
        **report,
        "parts": [
            {
                **vars(part.section),
                "title": part.title,
                "why": part.why,
                "text": part.text or None,
                "lines": [
                    {"sequence": sequence, "speaker": speaker, "text": text} for sequence, speaker, text in part.lines
                ],
            }
            for part in parts
        ],
    }
