"""Memory for LangChain and LangGraph agents on Supabase.

```python
from langchain.agents import create_agent
from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware

with SupabaseMemory.embedded("./memory") as memory:
    agent = create_agent("openai:gpt-5.5", middleware=[SupabaseMemoryMiddleware(memory)])
    agent.invoke({"messages": "I am Maya"}, {"configurable": {"thread_id": "first"}})
    for stored in memory.read(thread_id="first", last=20):
        print(stored.sequence, stored.message.text)
```

Names are imported when they are first used, so that importing the package stays fast and asks for no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_supabase_memory.boards.board import Board, BoardItem
    from langchain_supabase_memory.complete_summary import CompleteSummary
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.report import ContextReport
    from langchain_supabase_memory.controls import ControlChange, OptOut
    from langchain_supabase_memory.embedding_model import EmbeddingModel
    from langchain_supabase_memory.errors import SupabaseMemoryError
    from langchain_supabase_memory.expiry import cleanup
    from langchain_supabase_memory.extractive import ExtractiveSummarizer
    from langchain_supabase_memory.history import SupabaseChatMessageHistory
    from langchain_supabase_memory.long_term.memories import LongTerm, Memory, Remembered
    from langchain_supabase_memory.long_term.moving import (
        Promoted,
        Withdrawn,
        aforget_source,
        apromote,
        forget_source,
        promote,
    )
    from langchain_supabase_memory.long_term.on_store import StoreLongTerm
    from langchain_supabase_memory.long_term.on_vectors import VectorStoreLongTerm
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.messages.redaction.personal import PERSONAL_DATA
    from langchain_supabase_memory.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.messages.redaction.rules import RedactionRule, pattern_rule
    from langchain_supabase_memory.messages.redaction.secrets import SECRETS
    from langchain_supabase_memory.middleware import SupabaseMemoryMiddleware
    from langchain_supabase_memory.models import (
        AppendResult,
        BoardResult,
        Chunk,
        Conversation,
        ConversationKey,
        Coverage,
        Health,
        IndexResult,
        Recall,
        RecalledSummary,
        Receipt,
        Reference,
        Segment,
        StoredMessage,
        SummaryResult,
        Turn,
    )
    from langchain_supabase_memory.nodes import (
        LoadContextNode,
        SaveTurnNode,
        SupabaseSummarizationNode,
        SupabaseSummarizer,
    )
    from langchain_supabase_memory.retriever import SupabaseMemoryRetriever
    from langchain_supabase_memory.rollout.comparison import Comparison, RolloutReport
    from langchain_supabase_memory.rollout.stages import Rollout
    from langchain_supabase_memory.settings import (
        BoardPolicy,
        BreakerPolicy,
        ChunkPolicy,
        ContextBudget,
        RecallWeights,
        Retention,
        RetryPolicy,
        SummaryPolicy,
    )
    from langchain_supabase_memory.store import SupabaseStore
    from langchain_supabase_memory.streaming import arecord_stream, record_stream
    from langchain_supabase_memory.telemetry.metrics import Metrics
    from langchain_supabase_memory.telemetry.server import MetricsServer
    from langchain_supabase_memory.tools import (
        SupabaseMemoryToolkit,
        get_conversation_summary_tool,
        get_turn_tool,
        read_messages_tool,
        recall_context_tool,
        search_conversation_history_tool,
    )
    from langchain_supabase_memory.transports.postgres import PostgresTransport
    from langchain_supabase_memory.transports.supabase import SupabaseTransport
    from langchain_supabase_memory.work import ConversationStatus, Pause, Queue
    from langchain_supabase_memory.worker import Worker, WorkerPolicy

__all__ = [
    "PERSONAL_DATA",
    "SECRETS",
    "AppendResult",
    "Board",
    "BoardItem",
    "BoardPolicy",
    "BoardResult",
    "BreakerPolicy",
    "Chunk",
    "ChunkPolicy",
    "Comparison",
    "CompleteSummary",
    "ContextBudget",
    "ContextPack",
    "ContextReport",
    "ControlChange",
    "Conversation",
    "ConversationKey",
    "ConversationStatus",
    "Coverage",
    "EmbeddingModel",
    "ExtractiveSummarizer",
    "Health",
    "IndexResult",
    "LoadContextNode",
    "LongTerm",
    "Memory",
    "Metrics",
    "MetricsServer",
    "OptOut",
    "Pause",
    "PostgresTransport",
    "Promoted",
    "Queue",
    "Recall",
    "RecallWeights",
    "RecalledSummary",
    "Receipt",
    "RedactionRule",
    "Redactor",
    "Reference",
    "Remembered",
    "Retention",
    "RetryPolicy",
    "Rollout",
    "RolloutReport",
    "SaveTurnNode",
    "Segment",
    "StoreLongTerm",
    "StoredMessage",
    "SummaryPolicy",
    "SummaryResult",
    "SupabaseChatMessageHistory",
    "SupabaseMemory",
    "SupabaseMemoryError",
    "SupabaseMemoryMiddleware",
    "SupabaseMemoryRetriever",
    "SupabaseMemoryToolkit",
    "SupabaseStore",
    "SupabaseSummarizationNode",
    "SupabaseSummarizer",
    "SupabaseTransport",
    "Turn",
    "VectorStoreLongTerm",
    "Withdrawn",
    "Worker",
    "WorkerPolicy",
    "__version__",
    "aforget_source",
    "apromote",
    "arecord_stream",
    "cleanup",
    "forget_source",
    "get_conversation_summary_tool",
    "get_turn_tool",
    "pattern_rule",
    "promote",
    "read_messages_tool",
    "recall_context_tool",
    "record_stream",
    "search_conversation_history_tool",
]

_HOMES = {
    "PERSONAL_DATA": "messages.redaction.personal",
    "SECRETS": "messages.redaction.secrets",
    "AppendResult": "models",
    "Board": "boards.board",
    "BoardItem": "boards.board",
    "BoardPolicy": "settings",
    "BoardResult": "models",
    "BreakerPolicy": "settings",
    "Chunk": "models",
    "ChunkPolicy": "settings",
    "Comparison": "rollout.comparison",
    "CompleteSummary": "complete_summary",
    "ContextBudget": "settings",
    "ContextPack": "context.pack",
    "ContextReport": "context.report",
    "ControlChange": "controls",
    "Conversation": "models",
    "ConversationKey": "models",
    "ConversationStatus": "work",
    "Coverage": "models",
    "EmbeddingModel": "embedding_model",
    "ExtractiveSummarizer": "extractive",
    "Health": "models",
    "IndexResult": "models",
    "LoadContextNode": "nodes",
    "LongTerm": "long_term.memories",
    "Memory": "long_term.memories",
    "Metrics": "telemetry.metrics",
    "MetricsServer": "telemetry.server",
    "OptOut": "controls",
    "Pause": "work",
    "PostgresTransport": "transports.postgres",
    "Promoted": "long_term.moving",
    "Queue": "work",
    "Recall": "models",
    "RecallWeights": "settings",
    "RecalledSummary": "models",
    "Receipt": "models",
    "RedactionRule": "messages.redaction.rules",
    "Redactor": "messages.redaction.redactor",
    "Reference": "models",
    "Remembered": "long_term.memories",
    "Retention": "settings",
    "RetryPolicy": "settings",
    "Rollout": "rollout.stages",
    "RolloutReport": "rollout.comparison",
    "SaveTurnNode": "nodes",
    "Segment": "models",
    "StoreLongTerm": "long_term.on_store",
    "StoredMessage": "models",
    "SummaryPolicy": "settings",
    "SummaryResult": "models",
    "SupabaseChatMessageHistory": "history",
    "SupabaseMemory": "memory",
    "SupabaseMemoryError": "errors",
    "SupabaseMemoryMiddleware": "middleware",
    "SupabaseMemoryRetriever": "retriever",
    "SupabaseMemoryToolkit": "tools",
    "SupabaseStore": "store",
    "SupabaseSummarizationNode": "nodes",
    "SupabaseSummarizer": "nodes",
    "SupabaseTransport": "transports.supabase",
    "Turn": "models",
    "VectorStoreLongTerm": "long_term.on_vectors",
    "Withdrawn": "long_term.moving",
    "Worker": "worker",
    "WorkerPolicy": "worker",
    "aforget_source": "long_term.moving",
    "apromote": "long_term.moving",
    "arecord_stream": "streaming",
    "cleanup": "expiry",
    "forget_source": "long_term.moving",
    "get_conversation_summary_tool": "tools",
    "get_turn_tool": "tools",
    "pattern_rule": "messages.redaction.rules",
    "promote": "long_term.moving",
    "read_messages_tool": "tools",
    "recall_context_tool": "tools",
    "record_stream": "streaming",
    "search_conversation_history_tool": "tools",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("langchain-supabase-memory")
    if name not in _HOMES:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted(__all__)
