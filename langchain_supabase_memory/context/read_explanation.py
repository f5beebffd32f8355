"""The flow that reads what explains why a past answer did not know something."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context.expected_words import ExpectedWords
from langchain_supabase_memory.context.explain import Explainer, Place, PromptEvidence
from langchain_supabase_memory.context.past_prompt import PromptRebuilder
from langchain_supabase_memory.context.read_past_prompt import read_sources, stored_manifest
from langchain_supabase_memory.errors import MigrationConflictError
from langchain_supabase_memory.operations import profile, work
from langchain_supabase_memory.operations.boards.board import read_board
from langchain_supabase_memory.operations.listing import find_info
from langchain_supabase_memory.operations.recall.exact_search import ExactQuery, Order, find_all
from langchain_supabase_memory.operations.recall.query import Filters
from langchain_supabase_memory.operations.recall.ranges import zone
from langchain_supabase_memory.operations.recall.search import NO_CAPABILITIES, RecallCapabilities, is_related, recall
from langchain_supabase_memory.values import ConversationKey, Scope

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

    from langchain_supabase_memory.context.explanation import Explanation
    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.operations.manifests.manifest import Manifest
    from langchain_supabase_memory.settings import Retention
    from langchain_supabase_memory.values import Chunk, FoundMessage, Recall

_MAX_CALLS: Final = 5
"""How many calls search letter by letter, each up to 2,000 messages."""

_MAX_FOUND: Final = 20
"""How many messages with the words are read."""

_MAX_CHUNKS: Final = 50
"""How many chunks recall returns for the question."""

_MOST_WORDS: Final = 0.5
"""Where nothing has enough of the words, a message with at least this share of them counts."""

_MAX_ITEMS: Final = 1000
"""How many items of the board, and of the profile, are read."""


def why(
    key: ConversationKey,
    answer: Manifest | int,
    expected: str,
    *,
    retention: Retention | None = None,
    time_zone: str | tzinfo | None = None,
    capabilities: RecallCapabilities = NO_CAPABILITIES,
) -> Flow[Explanation]:
    """Explain why a past answer did not know something: where it was said, and what became of it in the prompt.

    The words are searched as `find` and `recall` search: in this conversation, on its board as it was, in the
    user's profile and in their other conversations, by words, and by meaning if there is an embedder. What became
    of them is read from the answer's manifest and its rebuilt prompt. Whether recall would find them is asked of
    recall as it is today, with the question of then. Nothing is written.

    Six to ten round trips, and two embeddings at most; up to eight more where there are more than 2,000
    messages: the first 10,000 of the conversation and the newest 10,000 of the user are searched letter by letter.

    Args:
        key: The conversation.
        answer: A manifest of `manifests`, or the number of the message that answered.
        expected: What it should have known: a fact or a code in a few words, up to 1,000 characters.
        retention: The retention to apply; by default all messages are retained.
        time_zone: The reader's time zone.
        capabilities: The models that can be used.

    Returns:
        The explanation: `text` is one paragraph, and each of its `parts` names its message, segment or item.

    Raises:
        InvalidInputError: It is neither a stored manifest nor a number, or the words are blank or too long.
        NotFoundError: No manifest is stored for the answer.
        SupabaseMemoryError: The database refused or could not be reached.
    """
    words = ExpectedWords(expected)
    manifest = yield from stored_manifest(key, answer, retention)
    reader = EvidenceReader(key, words, retention, capabilities)
    evidence = yield from reader.prompt_evidence(manifest, time_zone)
    evidence = yield from reader.with_places(evidence)
    return Explainer(words, (yield from reader.with_reasons(evidence))).explain()


@dataclass(frozen=True)
class EvidenceReader:
    """Reads what explains one answer.

    Attributes:
        key: The conversation.
        words: What it should have known.
        retention: The retention to apply.
        capabilities: The models that can be used.
    """

    key: ConversationKey
    words: ExpectedWords
    retention: Retention | None
    capabilities: RecallCapabilities

    def prompt_evidence(self, manifest: Manifest, time_zone: str | tzinfo | None) -> Flow[PromptEvidence]:
        """Read the prompt, the board as it was, and the profile.

        Args:
            manifest: The manifest of the answer.
            time_zone: The reader's time zone.
        """
        key = self.key
        sources = yield from read_sources(key, manifest, self.retention)
        board = sources.board
        if board is None:
            board = yield from read_board(key, limit=_MAX_ITEMS, retention=self.retention, at=manifest.made_at)
        items = []
        if not key.is_in_space:
            states: tuple[profile.ProfileState, ...] = ("held", "proposed", "superseded")
            items = yield from profile.read(key.user_id, states=states, limit=_MAX_ITEMS)
            sources = replace(sources, profile=[each for each in items if each.state != "proposed"])
        rebuilt = PromptRebuilder(key, manifest, sources, zone(time_zone)).rebuild()
        return PromptEvidence(key, manifest, rebuilt, sources, board, items, embedder=self.capabilities.model)

    def with_places(self, evidence: PromptEvidence) -> Flow[PromptEvidence]:
        """Find the messages that have the words: in this conversation, and in others if it has none before.

        Args:
            evidence: What was read so far.
        """
        here, is_complete = yield from self._search(Scope.of(self.key), "oldest", calls=_MAX_CALLS)
        matches, has_other_vectors = yield from self._recalled(
            Scope(self.key.user_id), self.words.text, _MAX_FOUND, RecallCapabilities(self.capabilities.model)
        )
        chunks = [each for each in matches.chunks if self._is_match(each)]
        near = [self._of_chunk(each) for each in chunks]
        places = _merged([each for each in near if each.key == self.key], here)
        evidence = replace(
            evidence,
            places=places,
            elsewhere=[each for each in near if each.key != self.key],
            is_complete=is_complete,
            has_other_vectors=has_other_vectors,
        )
        if Explainer(self.words, evidence).before:
            return evidence
        found, is_complete = yield from self._search(Scope(self.key.user_id), "newest", calls=_MAX_CALLS)
        others = [each for each in found if each.key != self.key]
        return replace(
            evidence,
            elsewhere=_merged(evidence.elsewhere, others),
            is_complete=evidence.is_complete and is_complete,
        )

    def with_reasons(self, evidence: PromptEvidence) -> Flow[PromptEvidence]:
        """Ask recall for the question of then, and how far the conversation with the words is indexed.

        Args:
            evidence: What was read so far.
        """
        explainer = Explainer(self.words, evidence)
        missed = explainer.missed
        if missed is None:
            if evidence.places or evidence.elsewhere:
                return evidence
            return replace(evidence, status=(yield from work.status_of(self.key)))
        status = yield from work.status_of(missed.key)
        listed = yield from find_info(missed.key, retention=self.retention)
        evidence = replace(evidence, status=status, info=listed)
        if not explainer.question or evidence.manifest.recall == "none":
            return evidence
        scope = evidence.manifest.recall
        asked = Scope(
            self.key.user_id,
            None if scope == "user" else self.key.agent_id,
            None if scope in ("user", "agent") else self.key.thread_id,
        )
        answer, has_other_vectors = yield from self._recalled(asked, explainer.question, _MAX_CHUNKS, self.capabilities)
        return replace(evidence, recall=answer, has_other_vectors=has_other_vectors)

    def _search(self, scope: Scope, order: Order, calls: int) -> Flow[tuple[list[Place], bool]]:
        """Return the messages that have the words, and whether all were searched."""
        retention, texts = self.retention, self.words.search_texts
        query = ExactQuery(texts=texts, order=order)
        page = yield from find_all(
            scope, query, limit=_MAX_FOUND, calls=calls, retention=retention, keep=self._has_words
        )
        if not page and len(texts) > 1:
            query = replace(query, texts=self.words.rarest_text)
            page = yield from find_all(
                scope, query, limit=_MAX_FOUND, calls=1, retention=retention, keep=self._has_most_words
            )
        return [self._of_message(each) for each in page], page.after is None or len(page) >= _MAX_FOUND

    def _recalled(
        self, scope: Scope, query: str, limit: int, capabilities: RecallCapabilities
    ) -> Flow[tuple[Recall, bool]]:
        """Return what recall finds, and whether the stored vectors are another embedder's."""
        filters = Filters(limit=limit)
        try:
            return (yield from recall(scope, query, filters=filters, capabilities=capabilities)), False
        except MigrationConflictError:
            return (yield from recall(scope, query, filters=filters)), True

    def _has_words(self, match: FoundMessage) -> bool:
        return self.words.is_in(match.message.text or "") or not match.message.text

    def _has_most_words(self, match: FoundMessage) -> bool:
        return self.words.ratio(match.message.text or "") >= _MOST_WORDS

    def _is_match(self, chunk: Chunk) -> bool:
        return self.words.is_in(chunk.content) or is_related(chunk, self.capabilities.model)

    def _of_message(self, match: FoundMessage) -> Place:
        stored = match.message
        key = replace(self.key, thread_id=match.thread_id, agent_id=match.agent_id)
        return Place(key, stored.sequence, stored.sequence, stored.text or "", stored.created_at)

    def _of_chunk(self, chunk: Chunk) -> Place:
        key = replace(self.key, thread_id=chunk.thread_id, agent_id=chunk.agent_id)
        return Place(key, chunk.from_sequence, chunk.to_sequence, chunk.content, chunk.said_at, chunk)


def _merged(chunks: Iterable[Place], messages: Iterable[Place]) -> list[Place]:
    """Return the places in order, each once: a message with its chunk, if recall found it too."""
    merged: dict[tuple[str, str, int], Place] = {}
    by_chunk = [*chunks]
    for each in messages:
        of_it = [near for near in by_chunk if near.key == each.key and near.first <= each.first <= near.last]
        merged[each.key.agent_id, each.key.thread_id, each.first] = (
            replace(each, chunk=of_it[0].chunk) if of_it else each
        )
    for each in by_chunk:
        if not any(near.key == each.key and each.first <= near.first <= each.last for near in merged.values()):
            merged[each.key.agent_id, each.key.thread_id, each.first] = each
    return sorted(merged.values(), key=lambda each: (each.key.agent_id, each.key.thread_id, each.first))
