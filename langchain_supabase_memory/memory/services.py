"""The shared services of a memory: its transport, settings, models, and the drivers of its flows."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext, suppress
from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_supabase_memory import effects
from langchain_supabase_memory.adapters import embedder as embedders
from langchain_supabase_memory.adapters import query_expander as expanders
from langchain_supabase_memory.adapters import reranker as rerankers
from langchain_supabase_memory.adapters import summarizer as summarizers
from langchain_supabase_memory.adapters import tone as tones
from langchain_supabase_memory.adapters.callbacks import without_streaming
from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, NoMetrics
from langchain_supabase_memory.adapters.transports.breaker import CLOSED, Breaker, BreakingTransport
from langchain_supabase_memory.checks import boolean
from langchain_supabase_memory.effects import SCHEMA, Ask, Call, Embed, ModelStep, RateTone, Rerank, SyncAsync
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.language.messages.redaction.redactor import redactor
from langchain_supabase_memory.memory import instrumentation
from langchain_supabase_memory.memory.background import CLOSE_SECONDS, FLUSH_SECONDS, BackgroundTasks
from langchain_supabase_memory.memory.handle import load
from langchain_supabase_memory.memory.health import HealthTracker
from langchain_supabase_memory.memory.outbox import Outbox
from langchain_supabase_memory.memory.pending_manifests import PendingManifests
from langchain_supabase_memory.operations.branch import StateRecords
from langchain_supabase_memory.operations.recall.search import RecallCapabilities
from langchain_supabase_memory.settings import ChunkPolicy, SummaryPolicy, check_settings
from langchain_supabase_memory.unpicklable import Unpicklable
from langchain_supabase_memory.values import ConversationKey, Health, Scope, as_id, as_space_id

if TYPE_CHECKING:
    from collections.abc import Iterator
    from contextlib import AbstractContextManager
    from typing import Self
    from uuid import UUID

    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.query_expander import ExpandModel
    from langchain_supabase_memory.adapters.reranker import RerankModel
    from langchain_supabase_memory.adapters.summarizer import SummaryModel
    from langchain_supabase_memory.adapters.tone import ToneModel
    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.effects import Flow, Observer, Step
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.memory.config import Settings

T = TypeVar("T")


class DefaultUser(str):
    """The default owner. A memory with one belongs to no user, so calls and runs may name others."""

    __slots__ = ()


ME: Final = DefaultUser("me")
"""The default owner in an embedded memory."""


def same_user(memory_user: str | None, user_id: str) -> None:
    """Reject a user other than the memory's. Neither id is in the error, because a client may see it.

    Args:
        memory_user: The user of the memory, if it has one.
        user_id: The given user.

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
    """The open or closed state of a memory; leaving the last `with` block closes it."""

    def __init__(self) -> None:
        self.is_closed = False
        self._entered: list[None] = []  # one for each `with` that is under way; lists change atomically

    def enter(self) -> None:
        """Open the memory."""
        self._entered.append(None)
        self.is_closed = False

    def leave(self) -> None:
        """Close the memory when the last `with` block is left; other blocks only close their own connections."""
        self._entered.pop()
        self.is_closed = self.is_closed or not self._entered


class Services(Unpicklable):
    """The services of a memory: its transport, settings and models.

    The arguments are those of `SupabaseMemory`.
    """

    def __init__(self, transport: Transport, *, user_id: str | UUID | None, agent_id: str, settings: Settings) -> None:
        user_id = None if user_id is None else as_id("user_id", user_id)
        agent_id = as_id("agent_id", agent_id)
        if not isinstance(transport, BreakingTransport):
            transport = BreakingTransport(transport, Breaker(settings.config.breaker))
        self.transport = transport
        self.user_id = user_id
        self.agent_id = agent_id
        self.settings = settings
        self.config = settings.config
        self._begin()
        self._outbox_of_all = self._outbox
        self.background = BackgroundTasks()
        self.identity: object = None
        self.member: str | None = None
        self.causes = HealthTracker(transport.breaker, of_a_user=self.transport.acts_as_user)
        self.model: SummaryModel | None = summarizers.summarizer(settings.model)
        self.embeddings: EmbeddingModel | None = embedders.embedder(settings.embeddings)
        self.reranker: RerankModel | None = rerankers.reranker(settings.config.reranker)
        self.expander: ExpandModel | None = expanders.expander(settings.config.expander)
        self.tone: ToneModel | None = tones.tone_model(settings.config.tone)
        self.metrics: NoMetrics = settings.config.metrics or NO_METRICS
        self.redactor: Redactor | None = redactor(settings.redactor)

    def _begin(self) -> None:
        """Create the state of one identity in this process; it is never shared with another identity."""
        needs_owner = self.transport.identity_is_callback
        self._outbox = Outbox(self.config.outbox_limit, needs_owner=needs_owner)
        self.records = StateRecords(needs_owner=needs_owner)
        self.packs = PendingManifests(needs_owner=needs_owner)
        self.lifetime = Lifetime()

    @property
    def outbox(self) -> Outbox:
        """Where messages of this identity wait: those of a verified token's user wait for any token of theirs."""
        user = None if self.identity is None else self.transport.accepted_user
        if user is None:
            return self._outbox
        outbox = self._outbox_of_all.of_user(user)
        self._outbox.move_to(outbox)
        return outbox

    def is_owner_known(self, key: ConversationKey) -> bool:
        """Whether state kept by a key is its owner's: where a callback says who signs in, the next may differ."""
        return (key.user_id is not None and not key.is_in_space) or not self.transport.identity_is_callback

    def may_derive(self, key: ConversationKey) -> bool:
        """Whether summaries, chunks and boards may be stored: in a space a server alone does, and no member's token."""
        return not (key.is_in_space and self.transport.acts_as_user)

    def for_user(self, user_id: str | UUID) -> Self:
        """Return the services for one user; all state is shared.

        Raises:
            InvalidInputError: The id is not a usable string, or the memory belongs to another user.
        """
        twin = copy(self)
        twin.user_id = self.scope_text(user_id)
        return twin

    def for_identity(self, identity: Any) -> Self:
        """Return the services for the bearer of a token, with the same models and connections.

        They share no state with another user's; messages that wait for the same user are delivered by either.

        Args:
            identity: The token or the claims in the transport's form.

        Raises:
            AuthenticationError: Nobody is signed in.
        """
        twin = copy(self)
        twin.transport = self.transport.for_token(identity)
        twin.user_id = None
        twin.causes = self.causes.for_user()
        twin.identity = twin.transport
        twin._begin()
        return twin

    def for_space(self, space_id: str) -> Self:
        """Return the services for a space, in which this memory's user acts; without one, a server by itself.

        Raises:
            InvalidInputError: It is not the id of a space.
        """
        twin = copy(self)
        twin.member = self.scope_text()
        twin.user_id = as_space_id(space_id)
        return twin

    @property
    def space_id(self) -> str:
        """The space that these services act in, which `for_space` names."""
        return str(self.user_id)

    def read_only(self, *, keywords_only: bool = False) -> Self:
        """Return services that do not summarize or index before an answer, and count nothing.

        Args:
            keywords_only: Whether to search without the embedder.
        """
        twin = copy(self)
        twin.config = replace(
            self.config,
            policy=replace(self.config.policy, mode="background"),
            chunking=replace(self.config.chunking, mode="background"),
        )
        twin.metrics = NO_METRICS
        if keywords_only:
            twin.embeddings = None
        return twin

    @property
    def embedder_name(self) -> str | None:
        """The name under which the embedder's vectors are stored; `None` without an embedder."""
        return None if self.embeddings is None else self.embeddings.name

    @property
    def capabilities(self) -> RecallCapabilities:
        """The models that a recall can use."""
        candidates = 0 if self.reranker is None else self.reranker.candidates
        return RecallCapabilities(self.embedder_name, candidates, self.expander is not None)

    @property
    def rates_tone(self) -> bool:
        """Whether the tone of what users say is rated as it is indexed."""
        return self.tone is not None

    @property
    def summarizer_name(self) -> str | None:
        """The name recorded as the author of summaries; `None` without a summarizer."""
        return None if self.model is None else self.model.name

    def key(
        self,
        thread_id: str | UUID,
        user_id: str | UUID | None = None,
        agent_id: str | None = None,
        *,
        private: bool = False,
    ) -> ConversationKey:
        """Return the key of a conversation from these ids and the memory's defaults.

        Raises:
            InvalidInputError: An id is not a usable string, or there is no owner.
            ConfigurationError: `private` is not a boolean.
        """
        boolean("private", private)
        return ConversationKey(
            as_id("thread_id", thread_id),
            self.owner(user_id),
            self.agent_id if agent_id is None else agent_id,
            self.member,
            private,
        )

    def owner(self, user_id: str | UUID | None = None) -> str | None:
        """Return the owner: the given user, or the memory's; `None` means the access token's subject.

        Raises:
            InvalidInputError: The id is not a usable string, or there is no owner.
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
        """Return the user of an operation on many conversations: the given user, or the memory's; `None` means all.

        Raises:
            InvalidInputError: The id is not a usable string (an empty one never means all users), or the memory
                belongs to another user.
        """
        if user_id is None:
            return None if self.user_id is None else str(self.user_id)
        named = as_id("user_id", user_id)
        if not isinstance(self.user_id, DefaultUser):
            same_user(self.user_id, named)
        return str(named)

    @property
    def fixed_user_id(self) -> str | None:
        """The only user of this memory, by `user_id` or by a token; `None` if calls and runs name the user."""
        if self.user_id is None:
            return getattr(self.transport, "user", None)
        return None if isinstance(self.user_id, DefaultUser) else self.user_id

    @property
    def served_user_id(self) -> str | None:
        """The user that work is done for; `None` for all users, also of an embedded memory with its default user."""
        return None if isinstance(self.user_id, DefaultUser) else self.scope_text()

    def scope(self, user_id: str | None = None, agent_id: str | None = None) -> Scope:
        """Return the scope of all of a user's conversations, or those with one agent.

        Raises:
            InvalidInputError: An id is not a usable string, or there is no owner.
        """
        return Scope(self.owner(user_id), None if agent_id is None else as_id("agent_id", agent_id))

    def agent(self, agent_id: str | None) -> str:
        """Return the given agent, or the memory's.

        Raises:
            InvalidInputError: The id is not a usable string.
        """
        return as_id("agent_id", self.agent_id if agent_id is None else agent_id)

    def chunking(self, chunking: ChunkPolicy | None = None) -> ChunkPolicy:
        """Return the given chunk policy, or the memory's."""
        check_settings(chunking=chunking)
        return chunking or self.config.chunking

    def require_embedder(self) -> str:
        """Return the embedder's name.

        Raises:
            ConfigurationError: There is no embedder.
        """
        return embedders.require_embedder(self.embeddings).name

    def summary_policy(self, policy: SummaryPolicy | None = None) -> SummaryPolicy:
        """Return the given summary policy, or the memory's, with open numbers derived from the budget."""
        check_settings(policy=policy)
        budget = self.settings.budget
        return (policy or self.config.policy).for_budget(budget, recalls=self.config.recall is not None)

    def health(self) -> Health:
        """Report, without a call, whether calls succeed, how much is in the outbox, and what fails and why."""
        transport = self.transport
        circuit = transport.breaker.circuit if isinstance(transport, BreakingTransport) else CLOSED
        return Health(
            circuit.state,
            circuit.failures,
            circuit.retry_in_seconds,
            circuit.last_code,
            len(self.outbox) if self.identity is not None else self.outbox.total,
            self.causes.failures,
            len(self.background),
        )

    def drained(self) -> SyncAsync:
        """Return the step that waits for the work behind answers, until all is done or for a minute."""
        arguments = FLUSH_SECONDS, self.identity
        return SyncAsync(partial(self.background.join, *arguments), partial(self.background.ajoin, *arguments))

    def drain(self) -> None:
        """Wait a few seconds for the work behind answers, and leave what is not begun by then to whoever is next."""
        if not self.background.join(CLOSE_SECONDS, self.identity):
            self.background.drop(self.identity)

    async def adrain(self) -> None:
        """The async twin of `drain`, which blocks no event loop."""
        if not await self.background.ajoin(CLOSE_SECONDS, self.identity):
            self.background.drop(self.identity)

    def run(self, flow: Flow[T]) -> T:
        """Run a flow with this memory's transport and models."""
        if self._has_unverified_outbox:
            with suppress(SupabaseMemoryError):  # the flow fails likewise
                effects.run(effects.call(SCHEMA, {}), self)
        return effects.run(flow, self)

    async def arun(self, flow: Flow[T]) -> T:
        """The async twin of `run`."""
        if self._has_unverified_outbox:
            with suppress(SupabaseMemoryError):  # the flow fails likewise
                await effects.arun(effects.call(SCHEMA, {}), self)
        return await effects.arun(flow, self)

    @property
    def _has_unverified_outbox(self) -> bool:
        """Whether messages wait for the user that the token names, which the database has not verified."""
        if self.identity is None or self.transport.accepted_user is not None:
            return False
        user = self.transport.user
        return user is not None and len(self._outbox_of_all.of_user(user)) > 0

    def load_observer(self) -> None:
        """Do nothing: `observing` imports what observes flows itself."""

    async def aload_observer(self) -> None:
        """Import the same in a thread, so that it holds up no event loop."""
        if instrumentation.is_on(self.metrics):
            await load("langchain_supabase_memory.memory.flow_observer")

    def observing(self, flow: Flow[Any]) -> AbstractContextManager[Observer]:
        """Return the observer of a running flow. It reports each failed step to `health`."""
        return instrumentation.observing(
            flow, self.metrics, self._watching, self.redactor, lambda: self.transport.endpoint
        )

    @contextmanager
    def answering(self, step: ModelStep) -> Iterator[Any]:
        """Return the model for a step, with streaming turned off.

        Raises:
            ConfigurationError: There is no such model.
        """
        asked = self._model_of(step)
        with without_streaming():
            yield asked

    def _watching(self, step: Step[Any]) -> AbstractContextManager[None]:
        """Report the end of a step to `health`. A closed memory or a missing model is not a failure of the step."""
        if isinstance(step, Call):
            self._check_open()
            return self.causes.watching(step.part, settles=step.function != SCHEMA, function=step.function)
        if isinstance(step, ModelStep):
            self._model_of(step)
        return nullcontext() if step.part is None else self.causes.watching(step.part)

    def _model_of(self, step: ModelStep) -> Any:
        if isinstance(step, Ask):
            return summarizers.require_summarizer(step.model or self.model)
        if isinstance(step, Embed):
            return embedders.require_embedder(step.embedder or self.embeddings)
        if isinstance(step, RateTone):
            return self.tone
        return self.reranker if isinstance(step, Rerank) else self.expander

    def _check_open(self) -> None:
        if self.lifetime.is_closed:
            raise ConfigurationError(
                "The memory is closed.",
                hint="Close it when nothing uses it any more, or enter it again: with memory: …",
            )
