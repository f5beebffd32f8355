"""A LangChain retriever that returns earlier messages as documents."""

from __future__ import annotations

from collections.abc import Collection  # noqa: TC003  # pydantic needs it
from dataclasses import fields
from datetime import UTC, datetime, tzinfo
from typing import TYPE_CHECKING, Any, Final, Literal, get_args  # noqa: F401  # pydantic needs it

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever, LangSmithRetrieverParams
from pydantic import Field, SkipValidation, ValidationError, model_validator

from langchain_supabase_memory.agents.run.identity import RunIdentity, current_run, current_thread
from langchain_supabase_memory.checks import choice, refuse_unknown
from langchain_supabase_memory.errors import InvalidInputError, SupabaseMemoryError
from langchain_supabase_memory.language.chunks.kinds import Kind  # noqa: TC001  # pydantic needs it
from langchain_supabase_memory.language.messages.content import display_text, indented
from langchain_supabase_memory.memory.memory import SupabaseMemory  # noqa: TC001  # pydantic needs it
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.operations.recall import exact_search, render, search
from langchain_supabase_memory.operations.recall.exact_search import ExactQuery, Order
from langchain_supabase_memory.operations.recall.query import (
    EXACT_BELOW,
    LIMIT,
    MAX_LIMIT,
    Filters,
    RecallQuery,
    check_questions,
)
from langchain_supabase_memory.operations.recall.ranges import TimeRange, bounds, zone
from langchain_supabase_memory.settings import DEFAULT_WEIGHTS, RecallWeights
from langchain_supabase_memory.values import RECALL_SCOPES, RecallScope, Scope, check_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from langchain_core.callbacks import AsyncCallbackManagerForRetrieverRun, CallbackManagerForRetrieverRun

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.values import Chunk, FoundMessage

_IDS: Final = ("thread_id", "agent_id")
_FILTERS: Final = tuple(each.name for each in fields(Filters) if each.name != "limit")  # that is `k`
_OF_CHUNKS: Final = ("types", "min_importance", "min_similarity", "episode", "characters")
_METADATA: Final = (
    "score",
    "score_parts",
    "similarity",
    "thread_id",
    "agent_id",
    "role",
    "speaker",
    "type",
    "importance",
    "episode",
)


class SupabaseMemoryRetriever(BaseRetriever):
    """Search earlier messages by meaning and by keyword, and return them as documents.

    ```python
    retriever = SupabaseMemoryRetriever(memory=memory, thread_id="studio", k=4)
    retriever.invoke("What did my kiln show?")
    retriever.invoke("What did my kiln show?", k=2, time_range="week")  # any field but `memory`, for one call
    retriever.invoke("What did my kiln show?", more=["kiln repairs"])  # several questions; each gets results
    retriever.invoke("E-47", exact="newest")  # messages that contain this exact text
    ```

    The search scope is the given thread; else all conversations of the given user, or of one of the user's agents;
    else, inside a graph, the run's own conversation (see `identity.RunIdentity`); else the conversations of the
    memory's user or of the user in its token. Without any user it raises an error and never searches everybody's
    conversations.

    A document's `page_content` is the text. Its `id` is the chunk's id, and its metadata is JSON with `score`,
    `score_parts`, `similarity`, `thread_id`, `agent_id`, `from_sequence`, `to_sequence`, `message_ids`, `role`,
    `speaker`, `type`, `importance`, `said_at` and `episode`; and `notes`, if its words were said several times or no
    longer hold. With `neighbors` or `episode`, `page_content` also has
    the surrounding text, one line per unit with its speaker, and the range and the ids cover all of it.

    With `exact`, each document is a message that contains the exact query, which has at most 1,000 characters, and
    `neighbors` counts messages, at most 10. The search reads 2,000 messages per call until it has `k` matches. Scores,
    types, importance, episodes and a limit in characters only apply to chunks: combining one with `exact` is an error.

    Attributes:
        memory: The memory to search.
        thread_id: Only search this conversation.
        agent_id: The agent.
        scope: `conversation`, `agent` or `user`, if no thread is given: the run's conversation, all of the user's
            conversations with this agent, or all of the user's conversations.
        k: The maximum number of documents.
        characters: The maximum number of characters of all documents together.
        time_range: `today`, `week`, `month`, `all`, or two times.
        time_zone: The user's time zone; the memory's by default.
        types: Only `dialogue`, `action`, `fact`, `question` or `answer`.
        min_importance: The minimum importance, 0 to 1.
        min_similarity: The minimum similarity to the query, -1 to 1.
        neighbors: How many units before and after each match to include.
        episode: Whether to include the whole episode of each match.
        fusion: How to merge keyword and vector results into one ranking: `score` or `rrf`.
        weights: The weight of each part of the score.
        exact_below: In scopes with more chunks than this, only candidates are ranked instead of every chunk.
        exact: Search for the exact text instead, the `newest` or the `oldest` messages first.

    Raises:
        InvalidInputError: A field has an invalid value, or there is no such field.
        ConfigurationError: `memory` is not a memory.
    """

    memory: SupabaseMemory = Field(exclude=True, repr=False)
    thread_id: str | None = None
    agent_id: str | None = None
    scope: RecallScope | None = None
    k: int = LIMIT
    characters: int | None = None
    time_range: SkipValidation[TimeRange] = "all"  # our own validation has clearer errors
    time_zone: SkipValidation[str | tzinfo | None] = None
    types: SkipValidation[Collection[Kind] | None] = None
    min_importance: float | None = None
    min_similarity: float | None = None
    neighbors: int = 0
    episode: bool = False
    fusion: str = "score"
    weights: RecallWeights = DEFAULT_WEIGHTS
    exact_below: int = EXACT_BELOW
    exact: SkipValidation[Order | None] = None

    if not TYPE_CHECKING:  # type checkers know the fields

        def __init__(self, *fields, **named):
            if fields:
                raise InvalidInputError(
                    "A retriever takes keyword arguments only.", hint="Pass memory=..., for example."
                )
            refuse_unknown(type(self).__name__, named, type(self).model_fields)
            require_memory(named.get("memory"))
            try:
                super().__init__(**named)
            except ValidationError as error:
                failure = _wrap_error(error)
            else:
                return
            raise failure

    @model_validator(mode="after")
    def _validate(self) -> Self:
        self._questions("", {})
        self._ids({})
        choice("exact", self.exact, get_args(Order), optional=True, error=InvalidInputError)
        return self

    def _get_relevant_documents(
        self, query: str, *, run_manager: CallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return self.memory._services.run(self._documents(query, options))

    async def _aget_relevant_documents(
        self, query: str, *, run_manager: AsyncCallbackManagerForRetrieverRun, **options: Any
    ) -> list[Document]:
        return await self.memory._services.arun(self._documents(query, options))

    def _get_ls_params(self, **_: Any) -> LangSmithRetrieverParams:
        params = LangSmithRetrieverParams(ls_retriever_name="supabase_memory", ls_vector_store_provider="Supabase")
        if self.memory._services.embeddings is not None:
            params["ls_embedding_model"] = self.memory._services.embeddings.name
        return params

    def _documents(self, query: str, options: Mapping[str, Any]) -> Flow[list[Document]]:
        refuse_unknown("A call of the retriever", options, (*_IDS, *_FILTERS, "k", "scope", "more", "exact", "verbose"))
        order: Order | None = options.get("exact", self.exact)
        if order is not None:
            return (yield from self._find_exact(query, order, options))
        scope, asked_for = self._scope(options), self._questions(query, options)
        result = yield from search.recall_chunks(scope, asked_for, self.memory._services.capabilities)
        return [_document(chunk) for chunk in result.chunks]

    def _find_exact(self, query: str, order: Order, options: Mapping[str, Any]) -> Flow[list[Document]]:
        filters = self._questions("", options)[0].filters
        for name in _OF_CHUNKS:
            if getattr(filters, name):
                raise InvalidInputError(
                    f"{name} applies to chunks, but an exact search finds messages.", hint=f"Omit {name} or exact."
                )
        since, until = bounds(filters.time_range, datetime.now(zone(filters.time_zone)))
        wanted = ExactQuery(texts=query, order=order, since=since, until=until, around=filters.neighbors)
        retention = self.memory._services.settings.retention
        page = yield from exact_search.find_all(
            self._scope(options), wanted, limit=filters.limit or LIMIT, retention=retention
        )
        return [_message_document(each) for each in page]

    def _questions(self, query: str, options: Mapping[str, Any]) -> list[RecallQuery]:
        k = options.get("k", self.k)
        if isinstance(k, bool) or not isinstance(k, int) or not 1 <= k <= MAX_LIMIT:
            raise InvalidInputError(f"k must be a whole number from 1 to {MAX_LIMIT:,}.", hint=f"Pass k={LIMIT}.")
        filters = Filters(limit=k, **{name: options.get(name, getattr(self, name)) for name in _FILTERS})
        filters = filters.in_zone(self.memory._services.config.time_zone)
        more = options.get("more")
        if more is not None and not isinstance(more, (list, tuple)):
            raise InvalidInputError("more must be a list of questions.", hint='Pass more=["..."].')
        return check_questions([query, *more] if more else query, filters)

    def _ids(self, options: Mapping[str, Any]) -> dict[str, str | None]:
        """Return the ids given in this call or in this retriever."""
        ids = {name: options.get(name, getattr(self, name)) for name in _IDS}
        for name, value in ids.items():
            if value is not None:
                check_id(name, value)
        return ids

    def _scope(self, options: Mapping[str, Any]) -> Scope:
        ids = self._ids(options)
        config, runtime = current_run()
        reach: RecallScope | None = options.get("scope", self.scope)
        choice("scope", reach, RECALL_SCOPES, optional=True, error=InvalidInputError)
        in_thread = current_thread(config, runtime) is not None
        if ids["thread_id"] is not None or (reach is None and in_thread):
            reach = "conversation"
        bound = RunIdentity(ids["agent_id"])
        # The run's agent only applies to its own conversation; only an agent given here narrows a wider scope.
        wide: RecallScope = "user" if ids["agent_id"] is None else "agent"
        return bound.scope(self.memory, config, runtime, reach or wide, ids["thread_id"])


def _wrap_error(error: ValidationError) -> SupabaseMemoryError:
    """Convert pydantic's error into ours, without the input values."""
    first = error.errors(include_url=False, include_input=False)[0]
    cause = first.get("ctx", {}).get("error")
    if isinstance(cause, SupabaseMemoryError):
        return cause
    name = ".".join(map(str, first["loc"]))
    return InvalidInputError(f"{name} is not valid.", hint=f"{first['msg']}.")


def _document(chunk: Chunk) -> Document:
    around = [*chunk.before, chunk, *chunk.after]
    lines = [f"{each.speaker or each.role.capitalize()}: {indented(each.content)}" for each in around]
    metadata = {
        **{name: getattr(chunk, name) for name in _METADATA},
        "from_sequence": around[0].from_sequence,
        "to_sequence": around[-1].to_sequence,
        "message_ids": list(dict.fromkeys(id_ for each in around for id_ in each.message_ids)),
        "said_at": chunk.said_at.isoformat(),
    }
    if notes := render.notes(chunk, UTC):
        metadata["notes"] = notes
    return Document(chunk.content if len(around) == 1 else "\n".join(lines), id=chunk.id, metadata=metadata)


def _message_document(match: FoundMessage) -> Document:
    around = [*match.before, match.message, *match.after]
    lines = [
        f"{each.speaker or (each.role or '').capitalize()}: {indented(display_text(each.message))}" for each in around
    ]
    stored = match.message
    metadata = {
        "thread_id": match.thread_id,
        "agent_id": match.agent_id,
        "role": stored.role,
        "speaker": stored.speaker,
        "from_sequence": around[0].sequence,
        "to_sequence": around[-1].sequence,
        "message_ids": [each.message_id for each in around],
        "said_at": stored.created_at.isoformat() if stored.created_at else None,
    }
    alone = display_text(stored.message) if stored.message else ""
    return Document(alone if len(around) == 1 else "\n".join(lines), id=stored.message_id, metadata=metadata)
