"""`supabase-memory search`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from langchain_supabase_memory.cli.options import addressed

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.finding import Found
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.values import Recall


@click.command()
@click.argument("words", nargs=-1, required=True)
@addressed
@click.option("--user", "user_id", required=True, help="Whose conversations.")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this conversation.")
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=10, show_default=True, help="The most that is recalled, or found."
)
@click.option(
    "--embeddings", help="A model of OpenAI that embeds, such as text-embedding-3-small: recall by meaning, too."
)
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
def search(
    words: tuple[str, ...],
    address: Address,
    user_id: str,
    agent_id: str | None,
    thread_id: str | None,
    limit: int,
    embeddings: str | None,
    as_json: bool,
) -> None:
    """Find what was said: what recall gives for these words, and where they stand.

    After what is recalled come the messages that hold every one of the words letter by letter, whatever their capitals,
    the newest first; words in quotes are one phrase. A number in brackets is that of a message, for
    `supabase-memory show --around`.
    """
    from langchain_supabase_memory.cli import finding, models, reading
    from langchain_supabase_memory.cli.hits import Hits
    from langchain_supabase_memory.cli.look import console
    from langchain_supabase_memory.operations.recall.exact_search import ExactQuery
    from langchain_supabase_memory.values import Scope

    query = " ".join(words)
    if not query.strip():
        raise click.UsageError("There are no words to look for. Type some, such as: search kiln error --user maya")
    texts = [word for word in dict.fromkeys(words) if word.strip()]
    ExactQuery(texts=texts)  # refuses what is too long, or too much, before anything is opened
    embedder = models.embedder(embeddings) if embeddings else None
    with address.opened(embeddings=embedder) as memory:
        if thread_id is None:
            scope = memory.scope(user_id, agent_id)
            recalled = memory.recall(query, user_id=user_id, agent_id=agent_id, limit=limit)
        else:
            conversation, _ = reading.found(memory, thread_id, user_id, agent_id)
            scope = Scope.of(conversation.key)
            recalled = conversation.recall(query, limit=limit)
        found = finding.found(memory, scope, texts, limit)
    if as_json:
        click.echo(json.dumps(_document(recalled, found), default=str))  # in ASCII, so that nothing in it is unseen
        return
    if recalled.failed:
        click.echo(f"Only by words, for the embedder failed: {recalled.failed}", err=True)
    hits = Hits(console())
    hits.recalled(recalled, query, is_of_one=thread_id is not None)
    hits.found(found, limit, is_of_one=thread_id is not None)


def _document(recalled: Recall, found: Found) -> dict[str, Any]:
    """What was found, for a program."""
    where = ("thread_id", "agent_id", "from_sequence", "to_sequence")
    names = (*where, "said_at", "role", "speaker", "content", "score", "score_parts")
    return {
        "recalled": [{name: getattr(each, name) for name in names} for each in recalled.chunks],
        "by_meaning": recalled.by_meaning,
        "failed": recalled.failed,
        "found": [
            {
                "thread_id": hit.thread_id,
                "agent_id": hit.agent_id,
                "sequence": hit.sequence,
                "said_at": hit.said_at,
                "role": hit.role,
                "excerpts": [each.text for each in hit.excerpts],
            }
            for hit in found.hits
        ],
        "more": found.is_cut,
    }
