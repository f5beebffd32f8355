"""A process of its own that stores a transcript turn by turn, so that it can be killed like any other process.

It goes on where the database says the conversation ends, and writes a number to its output after each turn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from langchain_supabase_memory.cli.demo import transcript
from langchain_supabase_memory.memory.memory import SupabaseMemory

THREAD = "demo"
USER = "maya"


def turns(said: list[transcript.Said]) -> list[list[transcript.Said]]:
    """The transcript cut before each human message."""
    cut: list[list[transcript.Said]] = []
    for each in said:
        if not cut or each.message.type == "human":
            cut.append([])
        cut[-1].append(each)
    return cut


def main(conn_string: str, path: str) -> None:
    """Store what is missing.

    Args:
        conn_string: The database's connection string.
        path: The transcript's file; empty for the bundled one.
    """
    said = transcript.load(Path(path) if path else None)
    with SupabaseMemory.from_conn_string(conn_string, user_id=USER) as memory:
        stored = memory.conversation(THREAD).count()
        done = 0
        for turn in turns(said):
            done += len(turn)
            if done <= stored:
                continue
            # The whole turn, though part of it may be there: what is there already is not stored again.
            memory.conversation(THREAD).append(
                [each.message for each in turn], created_at=[each.created_at for each in turn]
            )
            sys.stdout.write(f"{done}\n")
            sys.stdout.flush()
