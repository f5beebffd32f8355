"""The command line, `supabase-memory`. The environment is read here and nowhere else.

- `application`: the group, which imports a command when it is called; `commands`: one module for each; `ending`.
- `options`: what commands share on the command line, an address above all; `models`: what models they name.
- `look`: how ids, states and progress look on a terminal; `living`: the line of a worker.
- `demo`: the story that the command of this name tells.
"""

from __future__ import annotations

import signal
import sys
from typing import Final

STOPPED: Final = "Stopped by Ctrl-C."
"""What is said at the end that Ctrl-C brings."""

INTERRUPTED: Final = 130
"""The status that shells know for it: 128 and the number of SIGINT."""


def main() -> None:
    """Run the command line; say what to install where the extra `cli` is missing."""
    try:
        from langchain_supabase_memory.cli.ending import run

        status = run()
    except KeyboardInterrupt:  # before there is a command
        sys.stderr.write(f"{STOPPED}\n")
        status = INTERRUPTED
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("click", "rich"):
            raise
        sys.exit(
            "The command line needs packages that are not installed.\nRun: pip install 'langchain-supabase-memory[cli]'"
        )
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # what is left is to end what was started
    sys.exit(status)
