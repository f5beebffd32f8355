"""Memory for LangChain and LangGraph agents on Supabase.

```python
from langchain.agents import create_agent
from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware

with SupabaseMemory.embedded("./memory") as memory:
    agent = create_agent("openai:gpt-5.5", middleware=[SupabaseMemoryMiddleware(memory)])
    agent.invoke({"messages": "I am Maya"}, {"configurable": {"thread_id": "first"}})
    for stored in memory.conversation("first").read(last=20):
        print(stored.sequence, stored.message.text)
```

Names are imported when they are first used, so that importing the package stays fast and asks for no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.edge_embeddings import EdgeEmbeddings
    from langchain_supabase_memory.adapters.embedder import EmbeddingModel
    from langchain_supabase_memory.adapters.local_embeddings import LocalEmbeddings
    from langchain_supabase_memory.adapters.query_expander import ExpandModel
    from langchain_supabase_memory.adapters.reranker import RerankModel
    from langchain_supabase_memory.adapters.telemetry.metrics import Metrics
    from langchain_supabase_memory.adapters.telemetry.server import MetricsServer
    from langchain_supabase_memory.adapters.transports.postgres import PostgresTransport
    from langchain_supabase_memory.adapters.transports.supabase import SupabaseTransport
    from langchain_supabase_memory.agents.history import SupabaseChatMessageHistory
    from langchain_supabase_memory.agents.middleware import SupabaseMemoryMiddleware
    from langchain_supabase_memory.agents.nodes import (
        LoadContextNode,
        SaveTurnNode,
        SupabaseSummarizationNode,
        SupabaseSummarizer,
    )
    from langchain_supabase_memory.agents.retriever import SupabaseMemoryRetriever
    from langchain_supabase_memory.agents.streaming import arecord_stream, record_stream
    from langchain_supabase_memory.agents.tools import (
        SupabaseMemoryToolkit,
        get_conversation_summary_tool,
        get_turn_tool,
        read_messages_tool,
        recall_context_tool,
        search_conversation_history_tool,
    )
    from langchain_supabase_memory.context.growth import PromptGrowth, prompt_growth
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.report import ContextReport
    from langchain_supabase_memory.errors import SupabaseMemoryError
    from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
    from langchain_supabase_memory.language.messages.redaction.personal import PERSONAL_DATA
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.language.messages.redaction.rules import RedactionRule, pattern_rule
    from langchain_supabase_memory.language.messages.redaction.secrets import SECRETS
    from langchain_supabase_memory.long_term.memories import LongTerm, Memory, Remembered
    from langchain_supabase_memory.long_term.promotion import (
        Promoted,
        Revoked,
        aforget_source,
        apromote,
        forget_source,
        promote,
    )
    from langchain_supabase_memory.long_term.store import SupabaseStore
    from langchain_supabase_memory.long_term.store_backend import StoreLongTerm
    from langchain_supabase_memory.long_term.vector_backend import VectorStoreLongTerm
    from langchain_supabase_memory.memory.conversation import Conversation
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.operations.controls import ControlChange, OptOut
    from langchain_supabase_memory.operations.manifests.diff import ManifestDiff
    from langchain_supabase_memory.operations.manifests.manifest import Manifest, ManifestPage
    from langchain_supabase_memory.operations.rollout.comparison import Comparison, RolloutReport
    from langchain_supabase_memory.operations.rollout.stages import Rollout
    from langchain_supabase_memory.operations.summaries.complete import CompleteSummary
    from langchain_supabase_memory.operations.work import ConversationStatus, Pause, Queue
    from langchain_supabase_memory.settings import (
        BoardPolicy,
        BreakerPolicy,
        ChunkPolicy,
        ContextBudget,
        ManifestPolicy,
        RecallWeights,
        Retention,
        RetryPolicy,
        SummaryPolicy,
    )
    from langchain_supabase_memory.transfer.export_conversations import aexport_conversations, export_conversations
    from langchain_supabase_memory.transfer.import_conversations import aimport_conversations, import_conversations
    from langchain_supabase_memory.transfer.values import ExportReceipt, ImportReceipt
    from langchain_supabase_memory.values import (
        AppendResult,
        BoardResult,
        Chunk,
        ConversationInfo,
        ConversationKey,
        ConversationPage,
        Coverage,
        FoundMessage,
        FoundPage,
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
    from langchain_supabase_memory.worker import Worker, WorkerPolicy
    from langchain_supabase_memory.worker.cleanup import cleanup

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
    "ConversationInfo",
    "ConversationKey",
    "ConversationPage",
    "ConversationStatus",
    "Coverage",
    "EdgeEmbeddings",
    "EmbeddingModel",
    "ExpandModel",
    "ExportReceipt",
    "ExtractiveSummarizer",
    "FoundMessage",
    "FoundPage",
    "Health",
    "ImportReceipt",
    "IndexResult",
    "LoadContextNode",
    "LocalEmbeddings",
    "LongTerm",
    "Manifest",
    "ManifestDiff",
    "ManifestPage",
    "ManifestPolicy",
    "Memory",
    "Metrics",
    "MetricsServer",
    "OptOut",
    "Pause",
    "PostgresTransport",
    "Promoted",
    "PromptGrowth",
    "Queue",
    "Recall",
    "RecallWeights",
    "RecalledSummary",
    "Receipt",
    "RedactionRule",
    "Redactor",
    "Reference",
    "Remembered",
    "RerankModel",
    "Retention",
    "RetryPolicy",
    "Revoked",
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
    "Worker",
    "WorkerPolicy",
    "__version__",
    "aexport_conversations",
    "aforget_source",
    "aimport_conversations",
    "apromote",
    "arecord_stream",
    "cleanup",
    "export_conversations",
    "forget_source",
    "get_conversation_summary_tool",
    "get_turn_tool",
    "import_conversations",
    "pattern_rule",
    "promote",
    "prompt_growth",
    "read_messages_tool",
    "recall_context_tool",
    "record_stream",
    "search_conversation_history_tool",
]

_HOMES = {
    "PERSONAL_DATA": "language.messages.redaction.personal",
    "SECRETS": "language.messages.redaction.secrets",
    "AppendResult": "values",
    "Board": "operations.boards.board",
    "BoardItem": "operations.boards.board",
    "BoardPolicy": "settings",
    "BoardResult": "values",
    "BreakerPolicy": "settings",
    "Chunk": "values",
    "ChunkPolicy": "settings",
    "Comparison": "operations.rollout.comparison",
    "CompleteSummary": "operations.summaries.complete",
    "ContextBudget": "settings",
    "ContextPack": "context.pack",
    "ContextReport": "context.report",
    "ControlChange": "operations.controls",
    "Conversation": "memory.conversation",
    "ConversationInfo": "values",
    "ConversationKey": "values",
    "ConversationPage": "values",
    "ConversationStatus": "operations.work",
    "Coverage": "values",
    "ManifestDiff": "operations.manifests.diff",
    "EdgeEmbeddings": "adapters.edge_embeddings",
    "EmbeddingModel": "adapters.embedder",
    "ExpandModel": "adapters.query_expander",
    "ExportReceipt": "transfer.values",
    "ExtractiveSummarizer": "language.extractive",
    "FoundMessage": "values",
    "FoundPage": "values",
    "Health": "values",
    "ImportReceipt": "transfer.values",
    "IndexResult": "values",
    "LoadContextNode": "agents.nodes",
    "LocalEmbeddings": "adapters.local_embeddings",
    "LongTerm": "long_term.memories",
    "Manifest": "operations.manifests.manifest",
    "ManifestPage": "operations.manifests.manifest",
    "ManifestPolicy": "settings",
    "Memory": "long_term.memories",
    "Metrics": "adapters.telemetry.metrics",
    "MetricsServer": "adapters.telemetry.server",
    "OptOut": "operations.controls",
    "Pause": "operations.work",
    "PostgresTransport": "adapters.transports.postgres",
    "Promoted": "long_term.promotion",
    "PromptGrowth": "context.growth",
    "Queue": "operations.work",
    "Recall": "values",
    "RecallWeights": "settings",
    "RecalledSummary": "values",
    "Receipt": "values",
    "RedactionRule": "language.messages.redaction.rules",
    "Redactor": "language.messages.redaction.redactor",
    "Reference": "values",
    "Remembered": "long_term.memories",
    "RerankModel": "adapters.reranker",
    "Retention": "settings",
    "RetryPolicy": "settings",
    "Rollout": "operations.rollout.stages",
    "RolloutReport": "operations.rollout.comparison",
    "SaveTurnNode": "agents.nodes",
    "Segment": "values",
    "StoreLongTerm": "long_term.store_backend",
    "StoredMessage": "values",
    "SummaryPolicy": "settings",
    "SummaryResult": "values",
    "SupabaseChatMessageHistory": "agents.history",
    "SupabaseMemory": "memory.memory",
    "SupabaseMemoryError": "errors",
    "SupabaseMemoryMiddleware": "agents.middleware",
    "SupabaseMemoryRetriever": "agents.retriever",
    "SupabaseMemoryToolkit": "agents.tools",
    "SupabaseStore": "long_term.store",
    "SupabaseSummarizationNode": "agents.nodes",
    "SupabaseSummarizer": "agents.nodes",
    "SupabaseTransport": "adapters.transports.supabase",
    "Turn": "values",
    "VectorStoreLongTerm": "long_term.vector_backend",
    "Revoked": "long_term.promotion",
    "Worker": "worker",
    "WorkerPolicy": "worker",
    "aexport_conversations": "transfer.export_conversations",
    "aforget_source": "long_term.promotion",
    "aimport_conversations": "transfer.import_conversations",
    "apromote": "long_term.promotion",
    "arecord_stream": "agents.streaming",
    "cleanup": "worker.cleanup",
    "export_conversations": "transfer.export_conversations",
    "forget_source": "long_term.promotion",
    "get_conversation_summary_tool": "agents.tools",
    "get_turn_tool": "agents.tools",
    "import_conversations": "transfer.import_conversations",
    "pattern_rule": "language.messages.redaction.rules",
    "promote": "long_term.promotion",
    "prompt_growth": "context.growth",
    "read_messages_tool": "agents.tools",
    "recall_context_tool": "agents.tools",
    "record_stream": "agents.streaming",
    "search_conversation_history_tool": "agents.tools",
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
