"""Log formatters, as text or JSON. The package's own records carry ids and counts, in fields named `memory_…`."""

from __future__ import annotations

import json
import logging
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal

from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.values import log_fields

if TYPE_CHECKING:
    from langchain_supabase_memory.values import ConversationKey

PACKAGE: Final = "langchain_supabase_memory"
"""The root logger of this package."""

LogFormat = Literal["plain", "json"]

_FIELDS: Final = "memory_"
"""The prefix of the package's own fields."""

_FIRST: Final = (
    "alert",
    "outcome",
    "error",
    "code",
    "attempts",
    "quality",
    "lag_seconds",
    "thread_id",
    "user_id",
    "agent_id",
)
"""The fields that a text line shows first, without the prefix `memory_`."""

_NO_WORD: Final = re.compile(r'[\s"=]|^$')

_OF_EVERY_RECORD: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}


class JsonFormatter(logging.Formatter):
    """Formats one JSON object a line: `time` (UTC, ISO 8601), `level`, `logger`, `message`, and the fields of `extra`.

    For an exception it shows the class and where it was raised, but not its text, which may contain user content.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line."""
        shown: dict[str, Any] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields = {name: value for name, value in vars(record).items() if name not in _OF_EVERY_RECORD}
        shown = {**shown, **{name: value for name, value in fields.items() if name not in shown}}
        return json.dumps({**shown, **_error_text(record)}, default=_by_class, skipkeys=True)


class PlainFormatter(logging.Formatter):
    """Formats a line of text: time, level, logger, message, then the `memory_` fields as `key=value`, unprefixed.

    The outcome and its reason come first, then the ids, then the rest. Exceptions are shown as by `JsonFormatter`.
    """

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(name)s: %(message)s")

    def format(self, record: logging.LogRecord) -> str:
        """Format a record as one line; line breaks in the message stay."""
        record.message = record.getMessage()
        record.asctime = self.formatTime(record, self.datefmt)
        fields = {
            name.removeprefix(_FIELDS): value
            for name, value in vars(record).items()
            if name.startswith(_FIELDS) and value is not None
        }
        names = sorted(fields, key=lambda name: _FIRST.index(name) if name in _FIRST else len(_FIRST))
        shown = {**{name: fields[name] for name in names}, **_error_text(record)}
        return " ".join(
            [self.formatMessage(record), *(f"{name}={_field_text(value)}" for name, value in shown.items())]
        )


def configure(log_format: LogFormat, level: int = logging.INFO) -> None:
    """Write this package's records, and the warnings of all others, to standard error.

    Args:
        log_format: `json` for one object a line, `plain` for text.
        level: The minimum level of the package's own records.
    """
    handler = logging.StreamHandler()
    handler.setFormatter(JsonFormatter() if log_format == "json" else PlainFormatter())
    logging.basicConfig(handlers=[handler], level=logging.WARNING, force=True)
    logging.getLogger(PACKAGE).setLevel(level)


def conversation_fields(key: ConversationKey, error: SupabaseMemoryError | None = None) -> dict[str, Any]:
    """Return the fields of a record about a conversation: its ids, and the class and the code of an error."""
    return log_fields(key) if error is None else {**log_fields(key), **error_fields(error)}


def error_fields(error: BaseException) -> dict[str, Any]:
    """Return the fields of a record about a failure: the error's class, and the server's code if it has one."""
    return {
        "memory_error": type(error).__name__,
        "memory_code": error.code if isinstance(error, SupabaseMemoryError) else None,
    }


def _error_text(record: logging.LogRecord) -> dict[str, str]:
    """Return the class of a record's exception and where it was raised."""
    if not record.exc_info or record.exc_info[0] is None:
        return {}
    shown, trace = {"exception": record.exc_info[0].__name__}, record.exc_info[2]
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    if trace is not None:
        shown["raised_at"] = f"{trace.tb_frame.f_code.co_filename}:{trace.tb_lineno}"
    return shown


def _field_text(value: object) -> str:
    """Format a value as one word on one line: unchanged if possible, else as JSON."""
    if isinstance(value, str) and value.isprintable() and value == spell_out(value) and not _NO_WORD.search(value):
        return value
    return json.dumps(value, default=_by_class, skipkeys=True)


def _by_class(value: object) -> str:
    """Replace a value that JSON cannot encode with its class, because its text may contain anything."""
    return f"<{type(value).__name__}>"
