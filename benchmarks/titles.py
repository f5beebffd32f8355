"""Titles of tables and names of contestants that `RESULTS.md` quotes. Imports nothing that a benchmark needs."""

from __future__ import annotations

from typing import Final

APPEND_TITLE: Final = "Append a turn of two messages"
LOAD_TITLE: Final = "Load about 12,000 characters for the next prompt"
TURNS_TITLE: Final = "Turns per second: load, then append two messages"
PROCESSOR_TITLE: Final = "Client CPU time per turn"
CONVERSATION_TITLE: Final = "Growth with the number of messages, direct"
MANIFEST_TITLE: Final = "A turn of two messages with its manifest"

FLOOR: Final = "floor"
FLOOR_LC: Final = "floor + LangChain messages"
LOCK_BARE: Final = "lock the counter and insert, text and payload"
LOCK: Final = "lock the counter and insert, the memory's rows"
SQL: Final = "memory_append, JSON ready"
DIRECT: Final = "this package, direct"
DATA_API: Final = "this package, Data API"
CAREFUL: Final = "careful supabase-py"
HISTORY: Final = "langchain-postgres"
SAVER: Final = "LangGraph AsyncPostgresSaver"
