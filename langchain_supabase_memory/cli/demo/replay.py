"""A process that stores a transcript turn by turn, which the demo kills.

It starts where the stored conversation ends, and prints the number of stored messages after each turn.
"""

from __future__ import annotations

import sys
from pathlib import Path

from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.testing import transcript

THREAD = "demo"
USER = "maya"


def turns(lines: list[transcript.DemoLine]) -> list[list[transcript.DemoLine]]:
    """Split a transcript before each human message."""
    result: list[list[transcript.DemoLine]] = []
    for each in lines:
        if not result or each.message.type == "human":
            result.append([])
        result[-1].append(each)
    return result


def main(conn_string: str, path: str) -> None:
    """Store the missing messages.

    Args:
        conn_string: The database's connection string.
        path: The file of the transcript; empty for the bundled one.
    """
    lines = transcript.load(Path(path) if path else None)
    with SupabaseMemory.from_conn_string(conn_string, user_id=USER) as memory:
        stored = memory.conversation(THREAD).count()
        count = 0
        for turn in turns(lines):
            count += len(turn)
            if count <= stored:
                continue
            # `append` skips messages of this turn that are already stored.
            memory.conversation(THREAD).append(
                [each.message for each in turn], created_at=[each.created_at for each in turn]
            )
            sys.stdout.write(f"{count}\n")
            sys.stdout.flush()
