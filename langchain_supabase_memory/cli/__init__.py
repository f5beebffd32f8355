"""The command line, `supabase-memory`. Only this package reads the environment.

- `application`: the program and the registry of its commands; `commands`: one module per command; `exit_codes`.
- `options`: options that commands share; `models`: the models that they name; `load_app`: the application of `--app`.
- `formatting`, `text_layout`: how ids, states, progress and lines look; `status_line`: the line of a worker.
- `demo`: the story that the command `demo` tells.
"""

from __future__ import annotations

import signal
import sys
from typing import Final

INTERRUPT_TEXT: Final = "Stopped by Ctrl-C."
"""The last line after Ctrl-C."""

INTERRUPT: Final = 130
"""The exit code after Ctrl-C: 128 and the number of SIGINT."""


def main() -> None:
    """Run the command line. Without the extra `cli`, name the package to install."""
    try:
        from langchain_supabase_memory.cli.exit_codes import run

        status = run()
    except KeyboardInterrupt:  # while the imports run
        sys.stderr.write(f"{INTERRUPT_TEXT}\n")
        status = INTERRUPT
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("click", "rich"):
            raise
        sys.exit(
            "The command line needs packages that are not installed.\nRun: pip install 'langchain-supabase-memory[cli]'"
        )
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the end of the process is left
    sys.exit(status)
