"""`supabase-memory why`."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final

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
    from langchain_supabase_memory.context.explanation import Explanation
    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.operations.manifests.manifest import Manifest


@click.command()
@click.argument("thread")
@click.argument("answer", metavar="ANSWER")
@click.argument("words", nargs=-1, required=True)
@with_database_options
@user_option("Owner of the conversation")
@agent_option
@embeddings_option
@json_option
def why(
    thread: str,
    answer: str,
    words: tuple[str, ...],
    address: Address,
    user_id: str,
    agent_id: str | None,
    embeddings: str | None,
    as_json: bool,
) -> None:
    """Explain why an answer did not know something.

    ANSWER is the number of the message that answered, as `show` prints it, or `last`. WORDS are what it should have
    known: a fact or a code in a few words.

    The command prints where it was said, what became of it in the prompt of that answer, and why it was not recalled.
    """
    from langchain_supabase_memory.cli import message_pages, models
    from langchain_supabase_memory.cli.formatting import console, echo_json
    from langchain_supabase_memory.context.expected_words import ExpectedWords

    expected = ExpectedWords(" ".join(words)).text  # rejects blank and long ones before anything is opened
    if answer != "last" and not (answer.isascii() and answer.isdigit() and len(answer) < _DIGITS):
        raise click.BadParameter("Pass the number of a message, or last.", param_hint="ANSWER")
    with address.open(embeddings=models.embedder(embeddings)) as memory:
        conversation, _ = message_pages.find_conversation(memory, thread, user_id, agent_id)
        explanation = conversation.why(_newest(conversation) if answer == "last" else int(answer), expected)
    if as_json:
        echo_json(_document(explanation))
        return
    from langchain_supabase_memory.cli.text_layout import TextLayout
    from langchain_supabase_memory.language.messages.invisible import legible

    layout = TextLayout(console())
    for part in explanation.parts:
        layout.text(legible(part.text))


_DIGITS: Final = 12
"""More digits than a message's number has."""


def _newest(conversation: Conversation) -> Manifest:
    from langchain_supabase_memory.errors import NotFoundError

    manifests = conversation.manifests(limit=1).manifests
    if not manifests:
        raise NotFoundError(
            "No prompt is stored for any answer of this conversation.",
            hint="Middleware, nodes and chat histories store one with each answer, for 30 days.",
        )
    return manifests[0]


def _document(explanation: Explanation) -> dict[str, Any]:
    """Create the JSON document of an explanation."""
    parts = []
    for part in explanation.parts:
        names = {} if part.key is None else {"thread_id": part.key.thread_id, "agent_id": part.key.agent_id}
        parts.append({**{name: value for name, value in asdict(part).items() if name != "key"}, **names})
    return {
        "answer": explanation.manifest.to_sequence,
        "text": explanation.text,
        "was_in_prompt": explanation.was_in_prompt,
        "reasons": explanation.reasons,
        "is_complete": explanation.is_complete,
        "parts": parts,
    }
