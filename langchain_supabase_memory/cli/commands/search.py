"""`supabase-memory search`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from langchain_supabase_memory.cli.options import embeddings_option, json_option, user_option, with_database_options

if TYPE_CHECKING:
    from langchain_supabase_memory.cli.options import Address
    from langchain_supabase_memory.cli.search_results import Matches
    from langchain_supabase_memory.values import Recall


@click.command()
@click.argument("words", nargs=-1, required=True)
@with_database_options
@user_option("Owner of the conversations")
@click.option("--agent", "agent_id", help="Only conversations with this agent.")
@click.option("--thread", "thread_id", help="Only this thread.")
@click.option(
    "--limit",
    type=click.IntRange(1, 1000),
    default=10,
    show_default=True,
    help="Maximum number of results of each kind.",
)
@embeddings_option
@json_option
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
    """Search a user's conversations, by recall and by exact words.

    The command prints the results of recall, then the newest messages that contain every word, in any case. Words in
    quotes are one phrase. The number in brackets is the message's number, for `supabase-memory show --around`.
    """
    from langchain_supabase_memory.cli import message_pages, models, search_results
    from langchain_supabase_memory.cli.formatting import console, echo_json, format_id
    from langchain_supabase_memory.operations.recall.exact_search import ExactQuery
    from langchain_supabase_memory.values import Scope

    query = " ".join(words)
    if not query.strip():
        raise click.UsageError("There are no words to look for. Type some, such as: search kiln error --user maya")
    texts = [word for word in dict.fromkeys(words) if word.strip()]
    ExactQuery(texts=texts)  # rejects words that are too long or too many before anything is opened
    with address.open(embeddings=models.embedder(embeddings)) as memory:
        if thread_id is None:
            scope = memory._services.scope(user_id, agent_id)
            recall = memory.for_user(user_id).recall(query, agent_id=agent_id, limit=limit)
        else:
            conversation, _ = message_pages.find_conversation(memory, thread_id, user_id, agent_id)
            scope = Scope.of(conversation._key)
            recall = conversation.recall(query, limit=limit)
        matches = search_results.find_matches(memory, scope, texts, limit)
        is_empty = not (recall.chunks or matches.hits) and not memory.for_user(user_id).conversations(limit=1)
    if as_json:
        echo_json(_document(recall, matches))
        return
    if is_empty:
        click.echo(f"The user {format_id(user_id)} has no conversations.", err=True)
        return
    if recall.failed:
        click.echo(f"Keyword search only, because the embedder failed: {recall.failed}", err=True)
    results = search_results.SearchResults(console(), with_ids=thread_id is None)
    results.print_recall(recall, query)
    results.print_matches(matches, limit)


def _document(recall: Recall, matches: Matches) -> dict[str, Any]:
    """Create the JSON document of the results."""
    ids = ("thread_id", "agent_id", "from_sequence", "to_sequence")
    names = (*ids, "said_at", "role", "speaker", "content", "score", "score_parts")
    return {
        "recalled": [{name: getattr(each, name) for name in names} for each in recall.chunks],
        "by_meaning": recall.by_meaning,
        "failed": recall.failed,
        "found": [asdict(hit) for hit in matches.hits],
        "more": matches.has_more,
    }
