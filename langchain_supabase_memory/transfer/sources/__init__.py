"""Sources of conversations, and of profiles: one function for each, whose result `import_conversations` reads.

Each source reads lazily, and holds at most one conversation at a time.
"""

from langchain_supabase_memory.transfer.sources.chatgpt import chatgpt
from langchain_supabase_memory.transfer.sources.claude import claude
from langchain_supabase_memory.transfer.sources.histories import langchain_postgres, langchain_sql
from langchain_supabase_memory.transfer.sources.jsonl import jsonl
from langchain_supabase_memory.transfer.sources.langgraph import langgraph
from langchain_supabase_memory.transfer.sources.letta import letta
from langchain_supabase_memory.transfer.sources.mem0 import mem0
from langchain_supabase_memory.transfer.sources.openai_agents import openai_agents
from langchain_supabase_memory.transfer.sources.zep import zep

__all__ = [
    "chatgpt",
    "claude",
    "jsonl",
    "langchain_postgres",
    "langchain_sql",
    "langgraph",
    "letta",
    "mem0",
    "openai_agents",
    "zep",
]
