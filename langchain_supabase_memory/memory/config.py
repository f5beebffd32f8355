"""The settings of a memory: common ones are keywords, the others are in a `MemoryConfig`."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.adapters.telemetry.metrics import NoMetrics
from langchain_supabase_memory.checks import boolean, choice, number, require_type, wrong_type
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.operations.recall.ranges import known_zone
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
from langchain_supabase_memory.values import RECALL_SCOPES, RecallScope

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import tzinfo

    from langchain_core.embeddings import Embeddings

    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.query_expander import Expander, ExpandModel
    from langchain_supabase_memory.adapters.reranker import Reranker, RerankModel
    from langchain_supabase_memory.adapters.summarizer import Summarizer, SummaryModel
    from langchain_supabase_memory.adapters.telemetry.metrics import Metrics
    from langchain_supabase_memory.adapters.tone import Tone, ToneModel
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule

QUOTES: Final = ExtractiveSummarizer()
"""The summarizer if no model is given."""

OUTBOX_LIMIT: Final = 1000
"""The maximum number of messages of failed writes in the outbox, over all conversations of a memory."""


@dataclass(frozen=True, kw_only=True)
class MemoryConfig:
    """The less common settings of a memory: `SupabaseMemory.from_url(url, key, config=MemoryConfig(…))`.

    Attributes:
        policy: The default policy for summarizing older messages.
        board_policy: The policy for revising boards.
        chunking: How messages become chunks that recall finds.
        recall: The conversations that a pack recalls from: `"conversation"`, only its own; `"agent"`, all of the
            user's with the same agent; `"user"`, all of the user's; `None`, none.
        profile: Whether what users say of themselves is gathered into their profile when boards are revised, and stands
            in prompts; see `memory.profile`. Off by default.
        time_zone: The user's time zone, as an IANA name such as `"Asia/Manila"`, or a `tzinfo`; UTC by default. It
            defines days ("yesterday", "last Friday", `time_range="today"`), and the dates of recalled lines and of
            messages to a board's model. A run (`time_zone` of its context or configuration) or a call may override
            it.
        reranker: A second stage of recall, which reorders the best of the first stage: a LangChain document
            compressor, a function of the question and the documents, or a `RerankModel` with its own settings. If
            it fails or times out, the order of the first stage stays.
        expander: Adds questions to a recall query: a chat model or its name, a function, or an `ExpandModel` with
            its own settings. If it fails, only the original question is used.
        tone: Rates the tone of what users say, from -1 to 1, as it is indexed behind an answer: a function of a list
            of texts, a runnable, an object with `rate`, or a `ToneModel` with its own settings. Off by default. If it
            fails, chunks are stored without a tone.
        manifests: For which packs a manifest is stored, and how long: for every pack, 30 days.
            `ManifestPolicy(share=0)` stores none.
        breaker: When calls to an unreachable database are no longer tried.
        outbox_limit: The maximum number of messages of failed writes that histories over this memory store for a
            retry.
        metrics: Counts operations; by default nothing does.

    Raises:
        ConfigurationError: A setting is of the wrong type.
    """

    policy: SummaryPolicy = DEFAULT_POLICY
    board_policy: BoardPolicy = DEFAULT_BOARD
    chunking: ChunkPolicy = DEFAULT_CHUNKS
    recall: RecallScope | None = "conversation"
    profile: bool = False
    time_zone: str | tzinfo | None = None
    reranker: Reranker | RerankModel | None = None
    expander: Expander | ExpandModel | None = None
    tone: Tone | ToneModel | None = None
    manifests: ManifestPolicy = DEFAULT_MANIFESTS
    breaker: BreakerPolicy = DEFAULT_BREAKER
    outbox_limit: int = OUTBOX_LIMIT
    metrics: Metrics | None = None

    def __post_init__(self) -> None:
        check_settings(
            False,
            policy=self.policy,
            board_policy=self.board_policy,
            chunking=self.chunking,
            manifests=self.manifests,
            breaker=self.breaker,
        )
        choice("recall", self.recall, RECALL_SCOPES, optional=True, more="None")
        boolean("profile", self.profile)
        known_zone(self.time_zone)
        number("outbox_limit", self.outbox_limit, above=False, integer=True, optional=False, example=1000)
        if self.metrics is not None and not isinstance(self.metrics, NoMetrics):
            raise wrong_type("metrics", "a Metrics", self.metrics, "Pass metrics=Metrics().")


DEFAULT_CONFIG: Final = MemoryConfig()
"""Every setting at its default."""


@dataclass(frozen=True)
class Settings:
    """The default behavior of a memory. Every constructor takes these as keywords.

    Attributes:
        model: The model that writes summaries: a LangChain chat model, a runnable or a function, or a chat model's
            name, such as `"openai:gpt-5.5"`. By default `ExtractiveSummarizer` selects quotes. With `None` nothing
            is summarized, and a pack says what it leaves out.
        embeddings: The embedder for vector search: a LangChain embedder, its name, such as
            `"openai:text-embedding-3-small"`, or an `EmbeddingModel` with its own settings. Without one, or if it
            fails, recall uses keyword search.
        budget: The default budget of a context pack.
        retention: The default retention, by age or number of turns; everything is retained by default.
        redactor: Removes secrets and personal data before anything is stored: from messages, from what a person
            writes on a board or as a summary, and from the values of a `SupabaseStore` of this memory. Rules, such
            as `[*SECRETS, *PERSONAL_DATA]`, or a `Redactor`. Nothing is removed by default. Your message objects do
            not change, so the current turn and a graph's own state show the user's original text. Messages in the
            outbox are redacted when they are delivered. If a rule fails, nothing is stored: `append` raises, and
            histories, middleware and nodes put the messages into the outbox, as if the database were unreachable.
        config: All other settings.

    Raises:
        ConfigurationError: A setting is of the wrong type.
    """

    model: Summarizer | SummaryModel | None = QUOTES
    embeddings: Embeddings | EmbeddingModel | str | None = None
    budget: ContextBudget = DEFAULT_BUDGET
    retention: Retention | None = None
    redactor: Redactor | Iterable[RedactionRule] | None = None
    config: MemoryConfig = DEFAULT_CONFIG

    def __post_init__(self) -> None:
        check_settings(False, budget=self.budget)
        check_settings(retention=self.retention)
        require_type("config", self.config, MemoryConfig, 'config=MemoryConfig(recall="user"), for example')

    def keywords(self) -> dict[str, Any]:
        """Return the settings as keywords of a constructor."""
        return {each.name: getattr(self, each.name) for each in fields(self)}
