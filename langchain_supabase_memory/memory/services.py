"""What every part of a memory shares: its door, its defaults, and the drivers of its flows."""

from __future__ import annotations

from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langchain_supabase_memory import effects
from langchain_supabase_memory.adapters import embedder as embedders
from langchain_supabase_memory.adapters import query_expander as expanders
from langchain_supabase_memory.adapters import reranker as rerankers
from langchain_supabase_memory.adapters import summarizer as writers
from langchain_supabase_memory.adapters.callbacks import without_streaming
from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, NoMetrics
from langchain_supabase_memory.adapters.transports.breaker import CLOSED, Breaker, BreakingTransport
from langchain_supabase_memory.checks import choice, wrong_type
from langchain_supabase_memory.effects import SCHEMA, Ask, Call, Embed, ModelStep, Rerank
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.language.messages.redaction.redactor import redactor
from langchain_supabase_memory.memory import instrumentation
from langchain_supabase_memory.memory.health import HealthTracker
from langchain_supabase_memory.memory.outbox import Outbox
from langchain_supabase_memory.memory.pending_manifests import PendingManifests
from langchain_supabase_memory.operations.branch import StateRecords
from langchain_supabase_memory.operations.recall.ranges import known_zone
from langchain_supabase_memory.operations.recall.search import RecallCapabilities
from langchain_supabase_memory.settings import (
    DEFAULT_BOARD,
    DEFAULT_BREAKER,
    DEFAULT_BUDGET,
    DEFAULT_CHUNKS,
    DEFAULT_MANIFESTS,
    DEFAULT_POLICY,
    BoardPolicy,
    BreakerPolicy,
    ChunkPolicy,
    ContextBudget,
    ManifestPolicy,
    Retention,
    SummaryPolicy,
    check_settings,
)
from langchain_supabase_memory.unpicklable import Unpicklable
from langchain_supabase_memory.values import (
    RECALL_SCOPES,
    ConversationKey,
    Health,
    RecallScope,
    Scope,
    check_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from contextlib import AbstractContextManager
    from datetime import tzinfo
    from types import TracebackType
    from typing import Self

    from langchain_core.embeddings import Embeddings

    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.query_expander import Expander, ExpandModel
    from langchain_supabase_memory.adapters.reranker import Reranker, RerankModel
    from langchain_supabase_memory.adapters.summarizer import Summarizer, SummaryModel
    from langchain_supabase_memory.adapters.telemetry.metrics import Metrics
    from langchain_supabase_memory.adapters.transports.base import Transport
    from langchain_supabase_memory.effects import Flow, Observer, Step
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule

T = TypeVar("T")

QUOTES: Final = ExtractiveSummarizer()
"""What writes summaries where nobody names a model."""

OUTBOX_LIMIT: Final = 1000
"""The most messages of failed writes kept for a retry, over all conversations of a memory."""


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
            hint="Leave user_id out of the call, the run's context and its configurable. To serve several users, make "
            "the memory without user_id, or use memory.as_user(token) for each request.",
        )


@dataclass(frozen=True)
class Settings:
    """What a memory does where a call does not say otherwise. They are the keywords of every way to make a memory.

    Attributes:
        outbox_limit: The most messages of failed writes that histories over this memory keep for a retry.
        model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat model's
            name, such as `"openai:gpt-5.5"`. By default quotes are selected, by `ExtractiveSummarizer`. With `None`
            nothing is summarized, and a pack says what it leaves out.
        embeddings: What finds by meaning: any LangChain embedder, or its name, such as
            `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with settings of its own. Without one, or where it
            fails, what was said is found by its words.
        reranker: A second stage of recall, which puts the best of the first into a better order: any LangChain document
            compressor, or a function of the question and the documents; or a `RerankModel` with settings of its own.
            None by default. Where it fails or takes too long, the first stage's order stands.
        expand: What makes further questions of one that is looked for: a chat model or its name, or a function; or an
            `ExpandModel` with settings of its own. None by default. Where it fails, the question goes alone.
        budget: The budget of a context pack where a call gives none.
        policy: When and how older messages are summarized, where a call does not say.
        board_policy: When and how boards are revised.
        chunking: How what was said becomes chunks that can be recalled.
        recall: From where a pack recalls what has left it: by default from its conversation; `"agent"`: from all of
            the user's with the same agent; `"user"`: from all of the user's; `None`: nothing is recalled.
        time_zone: That of the user, as an IANA name such as `"Asia/Manila"`, or a `tzinfo`; UTC by default. Days begin
            in it ("yesterday", "last Friday", `time_range="today"`), and recalled lines and messages to a board's model
            are dated in it. A run (`time_zone` of its context or configuration) or a call may say another.
        retention: How long, or how many turns, are kept, where a call does not say; everything by default.
        manifests: Of which packs it is kept what stood in them, in numbers, and for how long: of every one, for 30
            days. `ManifestPolicy(share=0)` keeps none.
        breaker: When calls to a database that is away are no longer tried.
        metrics: Where to count what is done; nowhere by default.
        redact: What takes secrets and personal data out before it is stored: out of every message, what a person
            writes on a board or as a summary, and the values of a `SupabaseStore` of this memory. Rules, such as
            `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is taken out by default. It is about what is stored
            and made from it: your message objects stay as they are, so a pack shows the turn under way, and a graph's
            own state, in the user's own words. What waits in the outbox is in this process alone, and is redacted when
            it is delivered. If a rule fails, nothing is stored: `append` raises, and histories, middleware and nodes
            keep the messages in the outbox, as when the database is away.

    Raises:
        ConfigurationError: An argument is of another type than it must be.
    """

    outbox_limit: int = OUTBOX_LIMIT
    model: Summarizer | SummaryModel | None = QUOTES
    embeddings: Embeddings | EmbeddingModel | str | None = None
    reranker: Reranker | RerankModel | None = None
    expand: Expander | ExpandModel | None = None
    budget: ContextBudget = DEFAULT_BUDGET
    policy: SummaryPolicy = DEFAULT_POLICY
    board_policy: BoardPolicy = DEFAULT_BOARD
    chunking: ChunkPolicy = DEFAULT_CHUNKS
    recall: RecallScope | None = "conversation"
    time_zone: str | tzinfo | None = None
    retention: Retention | None = None
    manifests: ManifestPolicy = DEFAULT_MANIFESTS
    breaker: BreakerPolicy = DEFAULT_BREAKER
    metrics: Metrics | None = None
    redact: Redactor | Iterable[RedactionRule] | None = None

    def __post_init__(self) -> None:
        check_settings(
            False,
            budget=self.budget,
            policy=self.policy,
            board_policy=self.board_policy,
            chunking=self.chunking,
            manifests=self.manifests,
            breaker=self.breaker,
        )
        check_settings(retention=self.retention)
        choice("recall", self.recall, RECALL_SCOPES, optional=True, more="None")
        known_zone(self.time_zone)
        if self.metrics is not None and not isinstance(self.metrics, NoMetrics):
            raise wrong_type("metrics", "a Metrics", self.metrics, "Pass metrics=Metrics().")

    def keywords(self) -> dict[str, Any]:
        """Them as the keywords by which a memory is made."""
        return {each.name: getattr(self, each.name) for each in fields(self)}


class Services(Unpicklable):
    """A transport with the defaults of a memory: it names conversations and drives flows.

    Arguments as for `SupabaseMemory`.
    """

    def __init__(self, transport: Transport, *, user_id: str | None, agent_id: str, settings: Settings) -> None:
        if user_id is not None:
            check_id("user_id", user_id)
        check_id("agent_id", agent_id)
        if not isinstance(transport, BreakingTransport):
            transport = BreakingTransport(transport, Breaker(settings.breaker))
        self.transport: Transport = transport
        self.user_id = user_id
        self.agent_id = agent_id
        self.settings = settings
        self.outbox = Outbox(settings.outbox_limit, needs_owner=self.transport.user_varies)
        self.records = StateRecords(needs_owner=self.transport.user_varies)
        self.packs = PendingManifests(needs_owner=self.transport.user_varies)
        self.causes = HealthTracker(transport.breaker, of_a_user=self.transport.acts_as_user)
        self.model: SummaryModel | None = writers.summarizer(settings.model)
        self.embeddings: EmbeddingModel | None = embedders.embedder(settings.embeddings)
        self.reranker: RerankModel | None = rerankers.reranker(settings.reranker)
        self.expander: ExpandModel | None = expanders.expander(settings.expand)
        self.metrics: NoMetrics = settings.metrics or NO_METRICS
        self.redactor: Redactor | None = redactor(settings.redact)
        self._is_closed = False
        self._entered: list[None] = []  # one for each `with` that is under way; lists change atomically

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

    def key(self, thread_id: str, user_id: str | None = None, agent_id: str | None = None) -> ConversationKey:
        """The conversation that these ids and this memory's defaults name.

        Raises:
            InvalidInputError: An id is not a usable string, or nobody is named as the owner.
        """
        return ConversationKey(thread_id, self.owner(user_id), self.agent_id if agent_id is None else agent_id)

    def owner(self, user_id: str | None = None) -> str | None:
        """Whose something is: the user's who is named, or the memory's; `None` means the access token's.

        Raises:
            InvalidInputError: The id is not a usable string, or nobody is named.
        """
        owner = self.scope_text(user_id)
        if owner is None and not self.transport.acts_as_user:
            raise InvalidInputError(
                "No user is named.",
                hint="Pass user_id (to the call or to the memory), or the signed-in user's access token.",
            )
        return owner

    def scope_text(self, user_id: str | None) -> str | None:
        """Whose conversations a verb over several is about: the user's who is named, or the memory's; `None` for all.

        Raises:
            InvalidInputError: The id is not a usable string (an empty one never means everybody), or the memory was
                made for another user.
        """
        if user_id is None:
            return None if self.user_id is None else str(self.user_id)
        check_id("user_id", user_id)
        if not isinstance(self.user_id, DefaultUser):
            same_user(self.user_id, user_id)
        return str(user_id)

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
        if agent_id is not None:
            check_id("agent_id", agent_id)
        return Scope(self.owner(user_id), agent_id)

    def agent(self, agent_id: str | None) -> str:
        """The agent that is named, or the memory's.

        Raises:
            InvalidInputError: The id is not a usable string.
        """
        chosen = self.agent_id if agent_id is None else agent_id
        check_id("agent_id", chosen)
        return chosen

    def chunking(self, chunking: ChunkPolicy | None = None) -> ChunkPolicy:
        """A policy of chunks, or the memory's."""
        check_settings(chunking=chunking)
        return chunking or self.settings.chunking

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
        # Beside what is recalled a pack has less room for what stays verbatim.
        budget = budget if self.settings.recall is None else budget.without_recalled
        return (policy or self.settings.policy).for_budget(budget)

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
        if self._is_closed:
            raise ConfigurationError(
                "The memory is closed.",
                hint="Close it when nothing uses it any more, or enter it again: with memory: …",
            )

    def close(self) -> None:
        """Close the connections of the sync methods; clients that you passed stay open.

        What is called afterwards raises `ConfigurationError`, until the memory is entered again by `with`.
        """
        self._is_closed = True
        self.transport.close()

    async def aclose(self) -> None:
        """Close the connections of this event loop and of the sync methods; clients that you passed stay open.

        What is called afterwards raises `ConfigurationError`, until the memory is entered again by `async with`.
        """
        self._is_closed = True
        await self.transport.aclose()

    def __enter__(self) -> Self:
        self._enter()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        self.transport.close()

    async def __aenter__(self) -> Self:
        self._enter()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leave()
        await self.transport.aclose()

    def _enter(self) -> None:
        self._entered.append(None)
        self._is_closed = False

    def _leave(self) -> None:
        """The last of those that entered it closes it; the others close their own connections alone."""
        self._entered.pop()
        self._is_closed = self._is_closed or not self._entered

    def __repr__(self) -> str:
        """The door and the defaults, without keys."""
        return f"SupabaseMemory({self.transport!r}, user_id={self.user_id!r}, agent_id={self.agent_id!r})"
