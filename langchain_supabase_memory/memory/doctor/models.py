"""Checks of the memory's models: the summarizer, the embedder, and the stored vectors."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.effects import Flow, embed
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.memory.doctor.finding import Finding, green, red, yellow

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.memory.services import Services

_SECONDS: Final = 10.0
_PROBE: Final = "How does this memory stand?"
_INDEX: Final = re.compile(r"_hnsw_(\d+)$")


def summarizer(memory: Services) -> Finding:
    """Check whether there is a summarizer for summaries and boards, and whether its last call failed."""
    name = memory.summarizer_name
    if name is None:
        words = "This memory has no writer: nothing is summarized here, and packs leave out what has no room."
        return yellow("writer", words, "Pass model= to the memory, or run a worker that has one beside it.")
    cause = next((each for each in memory.causes.failures if each.part == "writer"), None)
    if cause is None:
        return green("writer", f"{name} writes summaries and boards.")
    words = f"{name} writes, and failed when it was last asked: {cause.reason}"
    return red("writer", words, "Check the model's name, its key and its limits, and ask again.")


def embedder(memory: Services, widths: Sequence[int], indexes: Sequence[str]) -> Flow[Finding]:
    """Check whether the embedder answers now, with vectors of the stored dimensions.

    Args:
        memory: The memory.
        widths: The dimensions of the vectors stored under its name.
        indexes: The names of the vector indexes.
    """
    name = memory.embedder_name
    if name is None:
        return green("embedder", "This memory has no embedder: what was said is found by its words.")
    try:
        vectors = yield from embed([_PROBE], seconds=_SECONDS)
    except SupabaseMemoryError as error:
        return red("embedder", f"{name}: {error.reason}", error.hint)
    width = len(vectors[0])
    if any(each != width for each in widths):
        words = f"{name} gives {width} dimensions, and what is stored under its name has {widths[0]}."
        return red("embedder", words, "Give the embedder back its dimensions, or wrap it in EmbeddingModel(name=…).")
    indexed = [int(found[1]) for each in indexes if (found := _INDEX.search(each))]
    if indexed and width not in indexed:
        words = f"{name} answers with {width} dimensions, and the vector index is for {indexed[0]}: it serves others."
        return yellow("embedder", words, f"Run `supabase-memory migrate --vector-index {width}`, and drop the other.")
    return green("embedder", f"{name} answers with {width} dimensions.")


def vectors(name: str, sample: Mapping[str, Any]) -> Finding:
    """Check whether chunks have vectors of the embedder.

    Args:
        name: The embedder's name.
        sample: The counts of at most a hundred chunks.
    """
    looked, lacking, others = sample["chunks"], sample["lacking"], sample["of_others"]
    if not lacking:
        what = f"{looked} chunks that were looked at have" if looked else "Nothing is indexed yet; chunks will have"
        return green("vectors", f"{what} a vector of {name}.")
    if others:
        words = f"Of {looked} chunks {others} have a vector of another model, and none of {name}."
        return red(
            "vectors", words, "Embed them anew: `conversation.chunks.reembed()` for each, or go back to that model."
        )
    words = f"Of {looked} chunks {lacking} have no vector of {name} yet, and are found by their words."
    return yellow("vectors", words, "Run a worker that has this embedder, or call `memory.work.index_due()`.")
