"""Memory for LangChain and LangGraph agents on Supabase.

```python
from langchain_core.messages import AIMessage, HumanMessage
from langchain_supabase_memory import SupabaseMemory

with SupabaseMemory.embedded("./memory") as memory:
    memory.append([HumanMessage("I am Maya"), AIMessage("Hello, Maya")], thread_id="first")
    for stored in memory.read(thread_id="first", last=20):
        print(stored.sequence, stored.message.text)
```

Names are imported when they are first used, so that importing the package stays fast and asks for no extra.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from langchain_supabase_memory.context.pack import ContextPack
    from langchain_supabase_memory.context.report import ContextReport
    from langchain_supabase_memory.errors import SupabaseMemoryError
    from langchain_supabase_memory.expiry import cleanup
    from langchain_supabase_memory.history import SupabaseChatMessageHistory
    from langchain_supabase_memory.memory import SupabaseMemory
    from langchain_supabase_memory.middleware import SupabaseMemoryMiddleware
    from langchain_supabase_memory.models import (
        AppendResult,
        Conversation,
        ConversationKey,
        Coverage,
        Health,
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
    from langchain_supabase_memory.settings import BreakerPolicy, ContextBudget, Retention, RetryPolicy, SummaryPolicy
    from langchain_supabase_memory.streaming import arecord_stream, record_stream
    from langchain_supabase_memory.tools import get_turn_tool
    from langchain_supabase_memory.transports.postgres import PostgresTransport
    from langchain_supabase_memory.transports.supabase import SupabaseTransport

__all__ = [
    "AppendResult",
    "BreakerPolicy",
    "ContextBudget",
    "ContextPack",
    "ContextReport",
    "Conversation",
    "ConversationKey",
    "Coverage",
    "Health",
    "LoadContextNode",
    "PostgresTransport",
    "Receipt",
    "Reference",
    "Retention",
    "RetryPolicy",
    "SaveTurnNode",
    "Segment",
    "StoredMessage",
    "SummaryPolicy",
    "SummaryResult",
    "SupabaseChatMessageHistory",
    "SupabaseMemory",
    "SupabaseMemoryError",
    "SupabaseMemoryMiddleware",
    "SupabaseSummarizationNode",
    "SupabaseSummarizer",
    "SupabaseTransport",
    "Turn",
    "__version__",
    "arecord_stream",
    "cleanup",
    "get_turn_tool",
    "record_stream",
]

_HOMES = {
    "AppendResult": "models",
    "BreakerPolicy": "settings",
    "ContextBudget": "settings",
    "ContextPack": "context.pack",
    "ContextReport": "context.report",
    "Conversation": "models",
    "ConversationKey": "models",
    "Coverage": "models",
    "Health": "models",
    "LoadContextNode": "nodes",
    "PostgresTransport": "transports.postgres",
    "Receipt": "models",
    "Reference": "models",
    "Retention": "settings",
    "RetryPolicy": "settings",
    "SaveTurnNode": "nodes",
    "Segment": "models",
    "StoredMessage": "models",
    "SummaryPolicy": "settings",
    "SummaryResult": "models",
    "SupabaseChatMessageHistory": "history",
    "SupabaseMemory": "memory",
    "SupabaseMemoryError": "errors",
    "SupabaseMemoryMiddleware": "middleware",
    "SupabaseSummarizationNode": "nodes",
    "SupabaseSummarizer": "nodes",
    "SupabaseTransport": "transports.supabase",
    "Turn": "models",
    "arecord_stream": "streaming",
    "cleanup": "expiry",
    "get_turn_tool": "tools",
    "record_stream": "streaming",
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
