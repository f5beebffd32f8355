"""The command line, `supabase-memory`: migrate, sql, check, worker, status, retry, cleanup, demo.

The environment is read here and nowhere else.
"""

from __future__ import annotations

import sys


def main() -> None:
    """Run the command line; say what to install where the extra `cli` is missing."""
    try:
        from langchain_supabase_memory.cli.commands import commands
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("click", "rich"):
            raise
        sys.exit(
            "The command line needs packages that are not installed.\nRun: pip install 'langchain-supabase-memory[cli]'"
        )
    commands(prog_name="supabase-memory")
