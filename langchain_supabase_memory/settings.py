"""The settings: frozen values, every field with its unit. The environment is read by the command line only."""

from __future__ import annotations

from dataclasses import dataclass

from langchain_supabase_memory.errors import ConfigurationError


@dataclass(frozen=True)
class RetryPolicy:
    """How a call is repeated when the server cannot be reached or asks to come back later.

    Every operation is idempotent (messages are stored by id), so every operation is repeated: after `wait_seconds`,
    then twice that, and so on, each with jitter, until `attempts` or `deadline_seconds` is used up.

    Attributes:
        attempts: The most tries of one call, the first included; 1 turns repeating off.
        deadline_seconds: No further try is begun this long after the first, in seconds.
        wait_seconds: The longest wait before the second try, in seconds; it doubles from try to try.
        longest_wait_seconds: The longest wait between two tries, in seconds.
    """

    attempts: int = 4
    deadline_seconds: float = 20.0
    wait_seconds: float = 0.2
    longest_wait_seconds: float = 3.0

    def __post_init__(self) -> None:
        if self.attempts < 1 or min(self.deadline_seconds, self.wait_seconds, self.longest_wait_seconds) < 0:
            raise ConfigurationError(
                "A retry policy needs at least one attempt and no negative time.", hint="RetryPolicy() is the default."
            )


DEFAULT_RETRY_POLICY = RetryPolicy()
"""Up to four tries within twenty seconds."""

NO_RETRY = RetryPolicy(attempts=1)
"""One try, then the error."""

DEFAULT_DIMENSIONS = 1536
"""The embedding width a database is set up for by default: that of OpenAI's text-embedding-3-small."""
