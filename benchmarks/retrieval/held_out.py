"""The learned second stage with coefficients that were fitted without the conversation at hand; see `fit`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.models import LearnedReranker

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_core.documents import Document

FILE: Final = Path(__file__).with_name("held_out.json")


class HeldOut:
    """Reranks each conversation by the fold that left it out, and unknown ones by the package's own coefficients."""

    def __init__(self) -> None:
        self._own = LearnedReranker()
        known = json.loads(FILE.read_text())
        folds = {fold for of in known.values() for fold in of["folds"].values()}
        rerankers = {fold: LearnedReranker({kind: of[fold] for kind, of in known.items()}) for fold in folds}
        self._by_conversation = {
            conversation: rerankers[fold] for of in known.values() for conversation, fold in of["folds"].items()
        }

    def __call__(self, question: str, documents: Sequence[Document]) -> list[float]:
        """Return a number for each document."""
        thread = documents[0].metadata["thread_id"]
        return self._by_conversation.get(thread, self._own)(question, documents)
