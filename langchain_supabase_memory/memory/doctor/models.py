"""Checks of the memory's models: the summarizer, the embedder, and the stored vectors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, embed
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.memory.doctor.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.memory.doctor.migration import NextMigration
    from langchain_supabase_memory.memory.services import Services

_SECONDS: Final = 10.0
_PROBE: Final = "Does the embedder answer?"
_INDEX: Final = re.compile(r"_hnsw_(\d+)$")


def summarizer(memory: Services) -> Finding:
    """Check whether there is a summarizer for summaries and boards, and whether its last call failed."""
    name = memory.summarizer_name
    if name is None:
        words = "This memory has no summarizer: it writes no summaries, and packs omit messages that do not fit."
        return yellow("summarizer", words, "Pass model= to the memory, or run a worker that has a model.")
    cause = next((each for each in memory.causes.failures if each.part == "summarizer"), None)
    if cause is None:
        return green("summarizer", f"{name} writes summaries and boards.")
    words = f"The last call of {name} failed: {cause.reason}"
    return red("summarizer", words, "Check the model's name, its API key and its rate limits, then try again.")


def embedder(
    memory: Services, widths: Sequence[int], indexes: Sequence[str], due: NextMigration | None
) -> Flow[Finding]:
    """Check whether the embedder answers now, with vectors of the stored dimensions.

    Args:
        memory: The memory.
        widths: The dimensions of the vectors stored under its name.
        indexes: The names of the vector indexes.
        due: What a migration does, if the database said what is installed.
    """
    name = memory.embedder_name
    if name is None:
        return green("embedder", "This memory has no embedder: recall is by keyword search.")
    try:
        vectors = yield from embed([_PROBE], seconds=_SECONDS)
    except SupabaseMemoryError as error:
        return red("embedder", f"{name}: {error.reason}", error.hint)
    width = len(vectors[0])
    if any(each != width for each in widths):
        words = f"The vectors of {name} have {width} dimensions, but those stored under its name have {widths[0]}."
        action = "Set the embedder's former dimensions, or give it another name with EmbeddingModel(name=…)."
        return red("embedder", words, action)
    indexed = [int(match[1]) for each in indexes if (match := _INDEX.search(each))]
    if indexed and width not in indexed:
        words = f"The vectors of {name} have {width} dimensions, but the vector index is for {indexed[0]}."
        action = f"Run `supabase-memory migrate --vector-index {width}`, and drop the other"
        return yellow("embedder", words, f"{action}." if due is None else due.action(action))
    return green("embedder", f"{name} answers with vectors of {width} dimensions.")


def vectors(name: str, sample: Mapping[str, Any]) -> Finding:
    """Check whether chunks have vectors of the embedder.

    Args:
        name: The embedder's name.
        sample: The counts of at most a hundred chunks.
    """
    sampled, lacking, others = sample["chunks"], sample["lacking"], sample["of_others"]
    if not lacking:
        words = f"All {sampled} sampled chunks have vectors of {name}." if sampled else "No chunks are indexed yet."
        return green("vectors", words)
    if others:
        words = f"{others} of {sampled} sampled chunks have vectors of another model, but not of {name}."
        action = "Call `conversation.chunks.reembed()` for each conversation, or switch back to the other model."
        return red("vectors", words, action)
    words = f"{lacking} of {sampled} sampled chunks have no vectors yet; only keyword search finds them."
    return yellow("vectors", words, "Run a worker that has this embedder, or call `memory.work.index_due()`.")
