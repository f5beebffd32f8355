"""Log lines as JSON. The package's own records carry ids and counts as fields whose names begin with `memory_`."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.errors import SupabaseMemoryError

if TYPE_CHECKING:
    from langchain_supabase_memory.models import ConversationKey

PACKAGE: Final = "langchain_supabase_memory"
"""The logger above all of this package's."""

LogFormat = Literal["plain", "json"]

_OF_EVERY_RECORD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """One JSON object a line: `time` (UTC, ISO 8601), `level`, `logger`, `message`, and what `extra` added.

    Of an exception it says the class and where it was raised, and not its text, which may hold what a user wrote.
    """

    def format(self, record: logging.LogRecord) -> str:
        """A record as one line."""
        shown: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
        shown = {**shown, **{name: value for name, value in fields.items() if name not in shown}}
        if record.exc_info and record.exc_info[0] is not None:
            shown["exception"] = record.exc_info[0].__name__
            trace = record.exc_info[2]
            while trace is not None and trace.tb_next is not None:
                trace = trace.tb_next
            if trace is not None:
                shown["raised_at"] = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
        return json.dumps(shown, default=_by_class, skipkeys=True)


def configure(log_format: LogFormat, level: int = logging.INFO) -> None:
    """Write this package's records, and the warnings of all others, to the standard error stream.

    Args:
        log_format: `json` for one object a line, `plain` for people.
        level: The least level of the package's own records.
    """
    plain = logging.Formatter("%(asctime)s %(levelname)-7s %(name)s: %(message)s")
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else plain)
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(PACKAGE).setLevel(level)


def about(key: ConversationKey, error: SupabaseMemoryError | None = None) -> dict[str, Any]:
    """The fields of a record about a conversation: its ids, and the class and the code of an error."""
    ids = {"memory_user_id": key.user_id, "memory_agent_id": key.agent_id, "memory_thread_id": key.thread_id}
    return ids if error is None else {**ids, **about_error(error)}


def about_error(error: BaseException) -> dict[str, Any]:
    """The fields of a record about a failure: the error's class, and the server's code if it has one."""
    return {
        "memory_error": type(error).__name__,
        "memory_code": error.code if isinstance(error, SupabaseMemoryError) else None,
    }


def _by_class(value: object) -> str:
    """What JSON does not know, by its class: its text may be anything."""
    return f"<{type(value).__name__}>"
