"""The flow that lists a conversation's manifests by pages, newest first, in one round trip."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.effects import Flow, call
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.arguments import check_limit, conversation_ids, retention_argument
from langchain_supabase_memory.operations.manifests.manifest import ManifestPage, manifest

if TYPE_CHECKING:
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import ConversationKey

_MAX_LIMIT: Final = 200
"""The maximum number of manifests on a page."""


def manifests(
    key: ConversationKey,
    *,
    limit: int = 20,
    after: str | None = None,
    from_sequence: int | None = None,
    to_sequence: int | None = None,
    retention: Retention | None = None,
) -> Flow[ManifestPage]:
    """Return a page of manifests, newest first: what was in the prompts of earlier answers, and why, in numbers.

    Middleware, nodes and histories store a manifest with each answer, and so does `append` if `pack` is given. The
    memory's `manifests` policy decides for how many answers and for how long. `Manifest.since` compares two
    manifests. A manifest says if messages that it names have changed or gone since.

    Args:
        key: The conversation.
        limit: The maximum number on a page, 1 to 200.
        after: The `after` of a page, to get the page of older manifests.
        from_sequence: Only manifests of answers from this number on; both bounds may be one answer's number.
        to_sequence: Only manifests of answers up to this number.
        retention: The retention to apply; by default all messages are retained.

    Raises:
        InvalidInputError: An argument is not one of its choices.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    if isinstance(limit, bool) or not isinstance(limit, int) or not 0 < limit <= _MAX_LIMIT:
        raise InvalidInputError(f"limit must be a whole number from 1 to {_MAX_LIMIT}.", hint="20 is the default.")
    if after is not None and not isinstance(after, str):
        raise InvalidInputError(f"after must be a text, not {type(after).__name__}.", hint="Pass page.after as it is.")
    arguments = {
        **conversation_ids(key),
        "p_from": check_limit("from_sequence", from_sequence),
        "p_to": check_limit("to_sequence", to_sequence),
        "p_limit": limit,
        "p_after": after,
        "p_retention": retention_argument(retention),
    }
    answer = yield from call("memory_manifests", arguments)
    return ManifestPage([manifest(row["pack"], row) for row in answer["manifests"]], answer["after"])
