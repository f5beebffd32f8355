"""What every part of a memory shares: its transport, its settings, its models, and the drivers of its flows."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_supabase_memory import effects
from langchain_supabase_memory.adapters import embedder as embedders
from langchain_supabase_memory.adapters import query_expander as expanders
from langchain_supabase_memory.adapters import reranker as rerankers
from langchain_supabase_memory.adapters import summarizer as writers
from langchain_supabase_memory.adapters.callbacks import without_streaming
from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, NoMetrics
from langchain_supabase_memory.adapters.transports.breaker import CLOSED, Breaker, BreakingTransport
from langchain_supabase_memory.effects import SCHEMA, Ask, Call, Embed, ModelStep, Rerank
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.language.messages.redaction.redactor import redactor
from langchain_supabase_memory.memory import instrumentation
from langchain_supabase_memory.memory.health import HealthTracker
from langchain_supabase_memory.memory.outbox import Outbox
from langchain_supabase_memory.memory.pending_manifests import PendingManifests
from langchain_supabase_memory.operations.branch import StateRecords
from langchain_supabase_memory.operations.recall.search import RecallCapabilities
from langchain_supabase_memory.settings import ChunkPolicy, SummaryPolicy, check_settings
from langchain_supabase_memory.unpicklable import Unpicklable
from langchain_supabase_memory.values import ConversationKey, Health, Scope, as_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Self
    from uuid import UUID

    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.query_expander import ExpandModel
    from langchain_supabase_memory.adapters.reranker import RerankModel
    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.effects import Flow, Observer, Step
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.memory.config import Settings

T = TypeVar("T")


class DefaultUser(str):
    """The owner where nobody is named. A memory with one was made for no user, so calls and runs may name others."""

    __slots__ = ()


ME: Final = DefaultUser("me")
"""The owner in an embedded memory where nobody is named."""


def same_user(memory_user: str | None, user_id: str) -> None:
    """Refuse a user who is not the one that a memory was made for. Neither id is in the error: a client may see it.

    Args:
        memory_user: The user that the memory was made for, if it was made for one.
        user_id: The user that is named.

    Raises:
        InvalidInputError: It is another user.
    """
    if memory_user is not None and user_id != memory_user:
        raise InvalidInputError(
            "The memory was made for one user, and the call or the run names another.",
            hint="Leave user_id out of the run's context and its configurable. To serve several users, make the memory "
            "without user_id, then memory.for_user(user_id) or memory.for_token(token) for each request.",
        )


class Lifetime:
    """Whether a memory is open: the last `with` that is left closes it."""

    def __init__(self) -> None:
        self.is_closed = False
        self._entered: list[None] = []  # one for each `with` that is under way; lists change atomically

    def enter(self) -> None:
        """Open it."""
        self._entered.append(None)
        self.is_closed = False

    def leave(self) -> None:
        """Close it for the last of those that entered it; the others close their own connections only."""
        self._entered.pop()
        self.is_closed = self.is_closed or not self._entered


class Services(Unpicklable):
    """What every part of a memory works with: its transport, its settings and its models.

    Arguments as for `SupabaseMemory`.
    """

    def __init__(self, transport: Transport, *, user_id: str | UUID | None, agent_id: str, settings: Settings) -> None:
        user_id = None if user_id is None else as_id("user_id", user_id)
        agent_id = as_id("agent_id", agent_id)
        if not isinstance(transport, BreakingTransport):
            transport = BreakingTransport(transport, Breaker(settings.config.breaker))
        self.transport: Transport = transport
        self.user_id = user_id
        self.agent_id = agent_id
        self.settings = settings
        self.config = settings.config
        self._begin()
        self.causes = HealthTracker(transport.breaker, of_a_user=self.transport.acts_as_user)
        self.model: SummaryModel | None = writers.summarizer(settings.model)
        self.embeddings: EmbeddingModel | None = embedders.embedder(settings.embeddings)
        self.reranker: RerankModel | None = rerankers.reranker(settings.config.reranker)
        self.expander: ExpandModel | None = expanders.expander(settings.config.expander)
        self.metrics: NoMetrics = settings.config.metrics or NO_METRICS
        self.redactor: Redactor | None = redactor(settings.redactor)

    def _begin(self) -> None:
        """Begin what one identity's process holds: nothing of it is another's."""
        needs_owner = self.transport.identity_is_callback
        self.outbox = Outbox(self.config.outbox_limit, needs_owner=needs_owner)
        self.records = StateRecords(needs_owner=needs_owner)
        self.packs = PendingManifests(needs_owner=needs_owner)
        self.lifetime = Lifetime()

    def for_user(self, user_id: str | UUID) -> Self:
        """The same for one user: it shares all that this one holds.

        Args:
            user_id: The user.

        Raises:
            InvalidInputError: The id is not a usable string, or these are another user's.
        """
        twin = copy(self)
        twin.user_id = self.scope_text(user_id)
        return twin

    def for_identity(self, identity: Any) -> Self:
        """The same models over the same connections, for the bearer of a token; nothing that waits is shared.

        Args:
            identity: The token or the claims, as the transport takes them.

        Raises:
            AuthenticationError: Nobody is signed in.
        """
        twin = copy(self)
        twin.transport = self.transport.for_token(identity)
        twin.user_id = None
        twin.causes = self.causes.for_user()
        twin._begin()
        return twin

    def read_only(self, *, by_words: bool = False) -> Self:
        """The same, which summarizes and indexes nothing before an answer, and counts nothing.

        Args:
            by_words: Whether it searches without the embedder.
        """
        twin = copy(self)
        twin.config = replace(
            self.config,
            policy=replace(self.config.policy, mode="background"),
            chunking=replace(self.config.chunking, mode="background"),
        )
        twin.metrics = NO_METRICS
        if by_words:
            twin.embeddings = None
        return twin

    @property
    def embedder_name(self) -> str | None:
        """What the embedder's vectors are recorded under; `None` without one."""
        return None if self.embeddings is None else self.embeddings.name

    @property
    def capabilities(self) -> RecallCapabilities:
        """What a recall has beside the database."""
        candidates = 0 if self.reranker is None else self.reranker.candidates
        return RecallCapabilities(self.embedder_name, candidates, self.expander is not None)

    @property
    def summarizer_name(self) -> str | None:
        """What summaries are noted to be written by; `None` without a writer."""
        return None if self.model is None else self.model.name

    def key(
        self, thread_id: str | UUID, user_id: str | UUID | None = None, agent_id: str | None = None
    ) -> ConversationKey:
        """The conversation that these ids and this memory's defaults name.

        Raises:
            InvalidInputError: An id is not a usable string, or nobody is named as the owner.
        """
        return ConversationKey(
            as_id("thread_id", thread_id), self.owner(user_id), self.agent_id if agent_id is None else agent_id
        )

    def owner(self, user_id: str | UUID | None = None) -> str | None:
        """Whose something is: the user's who is named, or the memory's; `None` means the access token's.

        Raises:
            InvalidInputError: The id is not a usable string, or nobody is named.
        """
        owner = self.scope_text(user_id)
        if owner is None and not self.transport.acts_as_user:
            raise InvalidInputError(
                "No user is named.",
                hint="Use memory.for_user(user_id), or memory.for_token(token) for a signed-in user. A run may name "
                'its user by {"configurable": {"user_id": "..."}}.',
            )
        return owner

    def scope_text(self, user_id: str | UUID | None = None) -> str | None:
        """Whose conversations a verb over several is about: the user's who is named, or the memory's; `None` for all.

        Raises:
            InvalidInputError: The id is not a usable string (an empty one never means everybody), or the memory was
                made for another user.
        """
        if user_id is None:
            return None if self.user_id is None else str(self.user_id)
        named = as_id("user_id", user_id)
        if not isinstance(self.user_id, DefaultUser):
            same_user(self.user_id, named)
        return str(named)

    @property
    def made_for(self) -> str | None:
        """The one user whose memory this is, by `user_id` or by a token; `None` where calls and runs name the user."""
        if self.user_id is None:
            return getattr(self.transport, "user", None)
        return None if isinstance(self.user_id, DefaultUser) else self.user_id

    def scope(self, user_id: str | None = None, agent_id: str | None = None) -> Scope:
        """All of a user's conversations, or those with one agent.

        Raises:
            InvalidInputError: An id is not a usable string, or nobody is named as the owner.
        """
        return Scope(self.owner(user_id), None if agent_id is None else as_id("agent_id", agent_id))

    def agent(self, agent_id: str | None) -> str:
        """The agent that is named, or the memory's.

        Raises:
            InvalidInputError: The id is not a usable string.
        """
        return as_id("agent_id", self.agent_id if agent_id is None else agent_id)

    def chunking(self, chunking: ChunkPolicy | None = None) -> ChunkPolicy:
        """A policy of chunks, or the memory's."""
        check_settings(chunking=chunking)
        return chunking or self.config.chunking

    def require_embedder(self) -> str:
        """The embedder's name.

        Raises:
            ConfigurationError: There is none.
        """
        return embedders.require_embedder(self.embeddings).name

    def summary_policy(self, policy: SummaryPolicy | None = None) -> SummaryPolicy:
        """A policy, or the memory's, with every number that was left open derived from the budget."""
        check_settings(policy=policy)
        budget = self.settings.budget
        return (policy or self.config.policy).for_budget(budget, recalls=self.config.recall is not None)

    def health(self) -> Health:
        """How the memory stands, without asking anybody: whether calls pass, what waits, and what fails and why."""
        transport = self.transport
        circuit = transport.breaker.circuit if isinstance(transport, BreakingTransport) else CLOSED
        return Health(
            circuit.state,
            circuit.failures,
            circuit.retry_in_seconds,
            circuit.last_code,
            len(self.outbox),
            self.causes.failures,
        )

    def run(self, flow: Flow[T]) -> T:
        """Drive a flow through this memory's transport, its summary model and its embedder."""
        return effects.run(flow, self)

    async def arun(self, flow: Flow[T]) -> T:
        """The async twin of `run`."""
        return await effects.arun(flow, self)

    def observing(self, flow: Flow[Any]) -> AbstractContextManager[Observer]:
        """What observes a flow while it is driven. `health` knows of each step that fails."""
        return instrumentation.observing(flow, self.metrics, self._watching)

    @contextmanager
    def answering(self, step: ModelStep) -> Iterator[Any]:
        """The model that a step asks for, while nothing of it is streamed.

        Raises:
            ConfigurationError: There is none.
        """
        asked = self._model_of(step)
        with without_streaming():
            yield asked

    def _watching(self, step: Step[Any]) -> AbstractContextManager[None]:
        """What tells `health` how a step ends. That what it asks for is closed or missing is no failure of it."""
        if isinstance(step, Call):
            self._check_open()
            return self.causes.watching(step.part, settles=step.function != SCHEMA, function=step.function)
        if isinstance(step, ModelStep):
            self._model_of(step)
        return nullcontext() if step.part is None else self.causes.watching(step.part)

    def _model_of(self, step: ModelStep) -> Any:
        if isinstance(step, Ask):
            return writers.require_summarizer(step.writer or self.model)
        if isinstance(step, Embed):
            return embedders.require_embedder(step.embedder or self.embeddings)
        return self.reranker if isinstance(step, Rerank) else self.expander

    def _check_open(self) -> None:
        if self.lifetime.is_closed:
            raise ConfigurationError(
                "The memory is closed.",
                hint="Close it when nothing uses it any more, or enter it again: with memory: …",
            )
