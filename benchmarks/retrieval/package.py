"""This package, through the same calls as an application, on a real Postgres."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from langchain_core.messages import AIMessage, HumanMessage

from benchmarks.retrieval.data_sets.longmemeval import SPEAKERS
from benchmarks.retrieval.late import Late
from benchmarks.retrieval.metrics import DEPTH, Unit
from langchain_supabase_memory import ContextBudget, MemoryConfig, SupabaseMemory
from langchain_supabase_memory.models import EmbeddingModel, RerankModel

if TYPE_CHECKING:
    from types import TracebackType
    from typing import Self

    from langchain_core.embeddings import Embeddings

    from benchmarks.retrieval.data import Conversation
    from benchmarks.retrieval.held_out import HeldOut
    from benchmarks.retrieval.rankings import Study
    from langchain_supabase_memory.values import RecallScope


CANDIDATES: Final = 100
"""How many chunks a second stage orders."""


@dataclass
class Package:
    """A memory that holds the conversations. Use it as a context manager.

    Attributes:
        conn_string: A database of this release.
        embedder: Enables search by meaning; without one, search is by words.
        user_id: The owner: one for each setting, so that settings share no messages.
        late: A second stage.
        has_board: Whether to update the board of each conversation to its newest message.
    """

    conn_string: str
    embedder: Embeddings | None
    user_id: str
    late: Late | HeldOut | None = None
    has_board: bool = False
    seconds: list[float] = field(default_factory=list)
    """The duration of each recall, including the embedding of the question."""
    _stored: set[str] = field(default_factory=set)

    def __enter__(self) -> Self:
        self.memory = SupabaseMemory.from_conn_string(
            self.conn_string,
            user_id=self.user_id,
            # A ranking does not depend on how busy the machine is.
            embeddings=None if self.embedder is None else EmbeddingModel(self.embedder, question_seconds=600),
            config=MemoryConfig(
                reranker=None if self.late is None else RerankModel(self.late, candidates=CANDIDATES, seconds=60)
            ),
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.memory.close()

    def store(self, conversation: Conversation) -> None:
        """Append the turns as messages of a user and an assistant, and index them; only people have names."""
        if conversation.id in self._stored:
            return
        if isinstance(self.late, Late):
            self.late.add(conversation)
        user, _ = conversation.speakers
        are_people = conversation.speakers != SPEAKERS
        messages = [
            (HumanMessage if turn.speaker == user else AIMessage)(
                turn.text, name=turn.speaker if are_people else None, id=turn.id
            )
            for turn in conversation.turns
        ]
        times = [turn.at for turn in conversation.turns]
        self.memory.conversation(conversation.id).append(messages, created_at=times)
        indexed = self.memory.conversation(conversation.id).index()
        if indexed.failed or indexed.through_sequence != len(messages) - 1:
            raise RuntimeError(f"not everything was indexed: {indexed}")
        if self.has_board:
            board = self.memory.conversation(conversation.id).board.revise()
            if board.failed or board.through_sequence != len(messages) - 1:
                raise RuntimeError(f"not everything is on the board: {board}")
        self._stored.add(conversation.id)

    def rank(self, study: Study) -> list[list[Unit]]:
        """Return the turns of each recalled chunk, the best first."""
        self.store(study.conversation)
        return [self._recalled(question, study.conversation.id) for question in study.questions]

    def _recalled(self, question: str, thread_id: str) -> list[Unit]:
        begun = time.perf_counter()
        found = self.memory.conversation(thread_id).recall(question, limit=DEPTH)
        self.seconds.append(time.perf_counter() - begun)
        if found.rerank_failed is not None:
            raise RuntimeError(f"the second stage failed: {found.rerank_failed}")
        return [tuple(chunk.message_ids) for chunk in found.chunks]

    def pack(self, question: str, thread_id: str, characters: int, recall: RecallScope = "conversation") -> str:
        """Return the context of the next prompt for a question, without the question: as an agent's turn has it."""
        asked = HumanMessage(question)
        budget = ContextBudget(characters=characters)
        pack = self.memory.conversation(thread_id).context(asked, budget=budget, recall=recall)
        return "\n".join(message.text for message in pack.messages)
