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

The result types are in `langchain_supabase_memory.types`, errors in `.errors`, more settings in `.settings`, import and
export in `.transfer`, and a model for tests in `.testing`. Names are imported on first use, so importing the package is
fast and needs no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_supabase_memory.adapters.local_embeddings import LocalEmbeddings
    from langchain_supabase_memory.agents.history import SupabaseChatMessageHistory
    from langchain_supabase_memory.agents.middleware import SupabaseMemoryMiddleware
    from langchain_supabase_memory.agents.nodes import LoadContextNode, SaveTurnNode, SupabaseSummarizationNode
    from langchain_supabase_memory.agents.retriever import SupabaseMemoryRetriever
    from langchain_supabase_memory.agents.streaming import arecord_stream, record_stream
    from langchain_supabase_memory.agents.tools import SupabaseMemoryToolkit
    from langchain_supabase_memory.errors import SupabaseMemoryError
    from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
    from langchain_supabase_memory.language.messages.redaction.personal import PERSONAL_DATA
    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor
    from langchain_supabase_memory.language.messages.redaction.secrets import SECRETS
    from langchain_supabase_memory.long_term.store import SupabaseStore
    from langchain_supabase_memory.memory.config import MemoryConfig
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.settings import BoardPolicy, ChunkPolicy, ContextBudget, Retention, SummaryPolicy
    from langchain_supabase_memory.worker import Worker, WorkerPolicy

__all__ = [
    "PERSONAL_DATA",
    "SECRETS",
    "BoardPolicy",
    "ChunkPolicy",
    "ContextBudget",
    "ExtractiveSummarizer",
    "LoadContextNode",
    "LocalEmbeddings",
    "MemoryConfig",
    "Redactor",
    "Retention",
    "SaveTurnNode",
    "SummaryPolicy",
    "SupabaseChatMessageHistory",
    "SupabaseMemory",
    "SupabaseMemoryError",
    "SupabaseMemoryMiddleware",
    "SupabaseMemoryRetriever",
    "SupabaseMemoryToolkit",
    "SupabaseStore",
    "SupabaseSummarizationNode",
    "Worker",
    "WorkerPolicy",
    "__version__",
    "arecord_stream",
    "record_stream",
]

_HOMES = {
    "PERSONAL_DATA": "language.messages.redaction.personal",
    "SECRETS": "language.messages.redaction.secrets",
    "BoardPolicy": "settings",
    "ChunkPolicy": "settings",
    "ContextBudget": "settings",
    "ExtractiveSummarizer": "language.extractive",
    "LoadContextNode": "agents.nodes",
    "LocalEmbeddings": "adapters.local_embeddings",
    "MemoryConfig": "memory.config",
    "Redactor": "language.messages.redaction.redactor",
    "Retention": "settings",
    "SaveTurnNode": "agents.nodes",
    "SummaryPolicy": "settings",
    "SupabaseChatMessageHistory": "agents.history",
    "SupabaseMemory": "memory.memory",
    "SupabaseMemoryError": "errors",
    "SupabaseMemoryMiddleware": "agents.middleware",
    "SupabaseMemoryRetriever": "agents.retriever",
    "SupabaseMemoryToolkit": "tools",
    "SupabaseStore": "long_term.store",
    "SupabaseSummarizationNode": "agents.nodes",
    "Worker": "worker",
    "WorkerPolicy": "worker",
    "arecord_stream": "agents.streaming",
    "record_stream": "agents.streaming",
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
