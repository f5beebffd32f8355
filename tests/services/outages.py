"""Answers observed from PostgREST 12 while its Postgres went down; `tests/adapters/test_outages.py` verifies them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True)
class Seen:
    """An answer.

    Attributes:
        status: Its HTTP status.
        code: The code in its document.
        when: What had happened to the database.
        retry_after: The header `Retry-After`.
        message: The message in its document.
    """

    status: int
    code: str
    when: str
    retry_after: str | None = None
    message: str = ""

    @property
    def body(self) -> bytes:
        return f'{{"code":"{self.code}","details":null,"hint":null,"message":"{self.message}"}}'.encode()

    @property
    def headers(self) -> dict[str, str]:
        return {} if self.retry_after is None else {"Retry-After": self.retry_after}


_AGAIN: Final = "Retrying the connection."
SEEN: Final = (
    Seen(400, "", "the server process died during the call"),
    Seen(503, "57P01", "stopped, or its postmaster died", "0", "terminating connection due to administrator command"),
    Seen(503, "57P02", "stopped at once", "0", "terminating connection because of crash of another server process"),
    Seen(
        503, "PGRST000", "nothing listens, starts up, shuts down, recovers", "0", f"Database connection error. {_AGAIN}"
    ),
    Seen(503, "PGRST001", "a connection of the pool is dead", "0", f"Database client error. {_AGAIN}"),
    Seen(503, "PGRST002", "no log-in", "0", "Could not query the database for the schema cache. Retrying."),
    Seen(503, "53100", "disk full", None, "could not extend file: No space left on device"),
)
"""The header is 4 or more during a longer outage, although PostgREST retries the database at each request."""
