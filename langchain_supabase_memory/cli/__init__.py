"""The command line, `supabase-memory`.

Only this package reads the environment, but for a variable of OpenTelemetry's (`memory.standard_spans`).

- `application`: the program and the registry of its commands; `commands`: one module per command; `exit_codes`.
- `options`: options that commands share; `models`: the models of those options; `load_app`: the `--app` application.
- `transfer_options`: code that import and export share; `confirmation`: questions before a deletion.
- `message_pages`, `message_view`, `transcript`: how `show` reads and prints messages.
- `board_view`, `pack_view`, `user_list`: output of `board`, `context` and `users`.
- `highlight`, `search_results`, `conversation_list`, `status_table`: output of `search`, `conversations` and `status`.
- `formatting`, `text_layout`: formats of ids, states, progress and lines; `status_line`: the status line of a worker.
- `demo`: the demo of the command `demo`.
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
    """Run the command line. If the extra `cli` is missing, print how to install it."""
    try:
        from langchain_supabase_memory.cli.exit_codes import run

        status = run()
    except KeyboardInterrupt:  # during the imports
        sys.stderr.write(f"{INTERRUPT_TEXT}\n")
        status = INTERRUPT
    except ImportError as error:
        if error.name is None or error.name.split(".")[0] not in ("click", "rich"):
            raise
        sys.exit(
            "The command line needs packages that are not installed.\nRun: pip install 'langchain-supabase-memory[cli]'"
        )
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # only the process exit is left
    sys.exit(status)
