"""A second stage without an additional model: late interaction over the token vectors of the same embedder.

For each word piece of the question it takes the most similar one of a turn and the two turns before and after it. The
score is their mean, weighted by the rarity of the pieces in the conversation (Khattab and Zaharia 2020, ColBERT, use
the unweighted sum).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from langchain_core.documents import Document
    from numpy.typing import NDArray

    from benchmarks.retrieval.data import Conversation
    from benchmarks.retrieval.embedder import MiniLM

WEIGHT: Final = 0.8
AROUND: Final = 0.3 / 0.4
SPEAKER: Final = 0.4 / 0.3
"""With it, the first stage's `around` weighs 0.3 instead of 0.4, and `speaker` 0.4 instead of 0.3."""

_REACH: Final = 2


@dataclass(frozen=True)
class Pieces:
    """The word pieces of texts.

    Attributes:
        ids: The ids of each text's pieces.
        vectors: For each text, one unit vector per piece.
    """

    ids: list[NDArray[np.int32]]
    vectors: list[NDArray[np.float32]]


@dataclass
class Late:
    """A reranker of conversations, as a function of a question and documents. Attributes: see `Package`."""

    embedder: MiniLM
    folder: Path
    _known: dict[str, tuple[Conversation, Pieces]] = field(default_factory=dict)
    _questions: dict[str, Pieces] = field(default_factory=dict)
    _rarities: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def add(self, conversation: Conversation) -> None:
        """Embed a conversation's turns and questions, once."""
        if conversation.id not in self._known:
            texts = [turn.text for turn in conversation.turns]
            self._known[conversation.id] = (conversation, self._pieces(texts))
            asked = self._pieces([each.text for each in conversation.questions])
            for place, each in enumerate(conversation.questions):
                self._questions[each.text] = Pieces([asked.ids[place]], [asked.vectors[place]])

    def __call__(self, query: str, documents: Sequence[Document]) -> list[float]:
        """Return the first stage's score with other weights, plus the fit of the word pieces."""
        conversation, pieces = self._known[documents[0].metadata["thread_id"]]
        late = self._fits(self._questions[query], conversation, pieces)
        late = (late - late.min()) / max(
            float(np.ptp(late)), 1e-9
        )  # scaled from 0 to 1, like the parts of the first stage
        return [_first(each.metadata) + WEIGHT * float(late[each.metadata["from_sequence"]]) for each in documents]

    def _fits(self, asked: Pieces, conversation: Conversation, pieces: Pieces) -> NDArray[np.float64]:
        """Return how well each turn with its neighbors fits a question."""
        best = np.stack([(asked.vectors[0] @ each.T).max(1) for each in pieces.vectors])
        sessions = [turn.session for turn in conversation.turns]
        rare = self._rarity(conversation, pieces)[asked.ids[0]]
        around = [
            best[
                [
                    place
                    for place in range(max(0, turn - _REACH), min(len(sessions), turn + _REACH + 1))
                    if sessions[place] == sessions[turn]
                ]
            ].max(0)
            for turn in range(len(sessions))
        ]
        return np.asarray(np.stack(around) @ rare / max(float(rare.sum()), 1e-9))

    def _rarity(self, conversation: Conversation, pieces: Pieces) -> NDArray[np.float64]:
        """Return the idf of every word piece in a conversation."""
        if conversation.id not in self._rarities:
            counts = np.zeros(40_000)
            for each in pieces.ids:
                counts[np.unique(each)] += 1
            self._rarities[conversation.id] = np.log(1 + (len(pieces.ids) - counts + 0.5) / (counts + 0.5))
        return self._rarities[conversation.id]

    def _pieces(self, texts: Sequence[str]) -> Pieces:
        path = self.folder / f"pieces-{hashlib.sha256(repr(texts).encode()).hexdigest()[:16]}.npz"
        if not path.exists():
            made = self.embedder.pieces(texts)
            ends = np.cumsum([len(ids) for ids, _ in made])
            ids, vectors = (np.concatenate([each[part] for each in made]) for part in (0, 1))
            np.savez(path, ids=ids, vectors=vectors.astype(np.float16), ends=ends)
        held: Any = np.load(path)
        ends = held["ends"][:-1]
        return Pieces(np.split(held["ids"], ends), np.split(held["vectors"].astype(np.float32), ends))


def _first(metadata: dict[str, Any]) -> float:
    parts = metadata["score_parts"]
    return float(metadata["score"] + (AROUND - 1) * parts.get("around", 0) + (SPEAKER - 1) * parts.get("speaker", 0))
