"""Every error this package raises, and the one table from a server's code to its class.

```
SupabaseMemoryError
├── InvalidInputError            what you passed cannot be stored or looked up       (also a ValueError)
├── ConfigurationError           the memory itself is set up wrongly                 (also a ValueError)
│   └── MissingDependencyError   an extra of this package is not installed           (also an ImportError)
├── SchemaError                  the database does not match this release
│   ├── SchemaMissingError       nothing of ours is there
│   ├── SchemaOutdatedError      an older (or newer) release set it up
│   └── MigrationConflictError   what was applied differs from what is asked for
├── AccessError                  the database refused this caller
│   ├── AuthenticationError      the key, the password or the token is wrong
│   │   └── TokenExpiredError    the token was right once
│   └── PermissionDeniedError    row level security or a missing grant
├── NotFoundError                what a call names does not exist                    (also a LookupError)
├── TooLargeError                more was sent at once than the server takes
├── EmbeddingError               the embedder failed, or its vectors are of no use
├── OutboxFullError              too many failed writes are waiting; this one was not accepted
├── UnavailableError             nothing is wrong with the call; it may be tried again  (retried by itself first)
└── DatabaseError                anything else the server answered
```

A message of ours never holds what a user wrote, a key or a password: servers put row contents into their error
texts, so only their code is kept (`error.code`), and the original is not chained.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple


class SupabaseMemoryError(Exception):
    """The base of every error of this package.

    Args:
        message: What went wrong, in one sentence; the class's own sentence by default.
        code: The server's code, if a server answered: an SQLSTATE such as `42501`, or PostgREST's `PGRST…`.
        hint: The next action, in one sentence; the class's own by default.
    """

    default_message: str = "The memory could not do this."
    default_hint: str = ""

    def __init__(self, message: str | None = None, *, code: str | None = None, hint: str | None = None) -> None:
        self.code = code
        self.hint = self.default_hint if hint is None else hint
        self.message = message or self.default_message
        super().__init__(self.message)

    def __str__(self) -> str:
        """The message, the code if there is one, and the next action."""
        code = f" [{self.code}]" if self.code else ""
        return f"{self.message}{code} {self.hint}".rstrip()


class InvalidInputError(SupabaseMemoryError, ValueError):
    """What was passed cannot be stored or looked up."""

    default_message = "The database refused a value."
    default_hint = "Check the ids, times and messages that were passed."


class ConfigurationError(SupabaseMemoryError, ValueError):
    """The memory is set up wrongly."""

    default_message = "There is no such database, schema or address."
    default_hint = "Check the project's url or the connection string."


class MissingDependencyError(ConfigurationError, ImportError):
    """An extra of this package is needed and not installed."""

    def __init__(self, feature: str, extra: str) -> None:
        super().__init__(
            f"{feature} needs packages that are not installed.",
            hint=f"Run: pip install 'langchain-supabase-memory[{extra}]'",
        )


class SchemaError(SupabaseMemoryError):
    """The database does not match this release."""


class SchemaMissingError(SchemaError):
    """Nothing of this package is in the database, or the Data API does not know of it yet."""

    default_message = "The memory's schema is not in this database."
    default_hint = (
        "Run `supabase-memory migrate`, or paste the output of `supabase-memory sql` into Supabase's SQL editor."
    )


class SchemaOutdatedError(SchemaError):
    """Another release of this package set the database up."""

    default_message = "The memory's schema in this database is of another release."
    default_hint = "Run `supabase-memory migrate` with this release of langchain-supabase-memory."


class MigrationConflictError(SchemaError):
    """What was applied to the database differs from what is asked for."""

    default_message = "The database was set up differently."
    default_hint = "Use the same --dimensions as the first time, and unedited migration files."


class AccessError(SupabaseMemoryError):
    """The database refused this caller."""


class AuthenticationError(AccessError):
    """The key, the password or the token is wrong."""

    default_message = "The key, password or access token was not accepted."
    default_hint = "Check the project's url and key (or the connection string), and that the token is of this project."


class TokenExpiredError(AuthenticationError):
    """The user's access token has expired."""

    default_message = "The access token has expired."
    default_hint = "Refresh the session and pass the new token, or pass a function as access_token."


class PermissionDeniedError(AccessError):
    """Row level security or a missing grant stands in the way."""

    default_message = "The database does not permit this to this caller."
    default_hint = (
        "A user's token reaches that user's own conversations only; a server uses the secret (service role) key."
    )


class NotFoundError(SupabaseMemoryError, LookupError):
    """What a call names does not exist, or belongs to somebody else."""

    default_message = "There is no such thing."
    default_hint = "Read again what there is: it may have been deleted."


class EmbeddingError(SupabaseMemoryError):
    """The embedder failed, or its vectors are of no use."""

    default_message = "The embedder failed."
    default_hint = "Check the embedder's key and network; what is stored is found by its words all the same."


class OutboxFullError(SupabaseMemoryError):
    """Too many failed writes are waiting; the newest was not accepted."""

    default_message = "Earlier writes failed and the outbox is full; these messages were not accepted."
    default_hint = "Bring the database back, then call flush(), or raise outbox_limit."


class TooLargeError(SupabaseMemoryError):
    """More was passed at once, or asked for, than the database, or a gateway before it, takes; nothing was changed."""

    default_message = "This is more than one call may pass or read."
    default_hint = "Pass or read less at once, or raise the limit in memory_private.limits."


class UnavailableError(SupabaseMemoryError):
    """The server could not be reached, gave no answer, or asked to come back later.

    Args:
        message: As for `SupabaseMemoryError`.
        code: As for `SupabaseMemoryError`.
        hint: As for `SupabaseMemoryError`.
        retry_after_seconds: How long the server asks to wait, in seconds; `None` if it does not say.
        is_away: Whether it tells that the database is away. By default it does, unless the code says that one call met
            another, took too long, or came too often.
    """

    default_message = "The database is not available."
    default_hint = "Check the address and the network; the call is safe to repeat."

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        hint: str | None = None,
        retry_after_seconds: float | None = None,
        is_away: bool | None = None,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.retry_after_seconds = retry_after_seconds
        self.is_away = _OF_ONE_CALL.fullmatch(code or "") is None if is_away is None else is_away


class DatabaseError(SupabaseMemoryError):
    """The server answered with an error that has no class of its own."""

    default_message = "The database answered with an error."
    default_hint = "Look the code up in the Postgres or PostgREST documentation; the server's log has the details."


_OF_ONE_CALL: Final = re.compile("(40|55)...|57014|XX000|429")
"""Codes of an `UnavailableError` that say nothing of the next call: SQLSTATEs, and the status of too many."""


class _Meaning(NamedTuple):
    """What a code or a status means: the class, and its own sentences where the class's would not be true."""

    kind: type[SupabaseMemoryError]
    message: str | None = None
    hint: str | None = None


_NO_DATABASE: Final = _Meaning(UnavailableError, "The Data API has no connection to the database.")
_NO_API: Final = _Meaning(
    ConfigurationError,
    "There is no Data API at this address.",
    'Check the project\'s url, and rest_path: "/rest/v1" on Supabase, "" for a bare PostgREST.',
)
_BAD_GATEWAY: Final = _Meaning(UnavailableError, "A gateway answered in the database's place.")

# The longest matching prefix wins. Sources: PostgreSQL's appendix A, PostgREST's error reference.
_CODES: Final[dict[str, _Meaning]] = {
    "08": _Meaning(UnavailableError, "The connection to the database was lost."),
    "22": _Meaning(InvalidInputError),  # data exceptions
    "23": _Meaning(InvalidInputError),  # constraint violations
    "28": _Meaning(AuthenticationError),  # invalid password or role
    "3D000": _Meaning(ConfigurationError),  # no such database
    "3F000": _Meaning(SchemaMissingError),  # no such schema
    "40": _Meaning(UnavailableError, "The call met another one and was rolled back."),
    "42501": _Meaning(PermissionDeniedError),
    "42883": _Meaning(SchemaMissingError),  # no such function
    "42P01": _Meaning(SchemaMissingError),  # no such table
    "53": _Meaning(UnavailableError, "The database is out of connections, memory or disk."),
    "55P03": _Meaning(UnavailableError, "What the call needs was locked for too long."),
    "57": _Meaning(UnavailableError, "The database is starting up or shutting down."),
    "XX000": _Meaning(UnavailableError, "The database failed inside; it does while its functions are replaced."),
    "57014": _Meaning(UnavailableError, "The database broke the call off because it took too long."),
    "PGRST000": _NO_DATABASE,
    "PGRST001": _NO_DATABASE,
    "PGRST002": _NO_DATABASE,
    "PGRST003": _Meaning(UnavailableError, "The Data API had no connection to the database free in time."),
    "PGRST106": _Meaning(ConfigurationError),  # schema not exposed
    "PGRST125": _NO_API,  # no such path
    "PGRST202": _Meaning(SchemaMissingError),  # no such function
    "PGRST301": _Meaning(AuthenticationError),  # token not valid
    "PGRST302": _Meaning(AuthenticationError),  # no anonymous access
    "PGRST303": _Meaning(AuthenticationError),  # claims not valid
    "PT400": _Meaning(InvalidInputError),  # raised by our own functions
    "PT404": _Meaning(NotFoundError),
    "PT409": _Meaning(MigrationConflictError),
    "PT413": _Meaning(TooLargeError),
}

# Where a gateway answers in place of the database, its HTTP status is all there is. From 520 on: Cloudflare's, and 540
# Supabase's own.
_STATUSES: Final[dict[int, _Meaning]] = {
    401: _Meaning(AuthenticationError),
    403: _Meaning(PermissionDeniedError),
    404: _NO_API,
    408: _Meaning(UnavailableError, "The server gave up waiting for the request."),
    413: _Meaning(TooLargeError),
    425: _Meaning(UnavailableError, "The server asks for the request once more, later."),
    429: _Meaning(UnavailableError, "The server has had too many requests."),
    500: _Meaning(UnavailableError, "The server failed before the database answered."),
    502: _BAD_GATEWAY,
    503: _BAD_GATEWAY,
    504: _BAD_GATEWAY,
    **dict.fromkeys([*range(520, 528), 530], _BAD_GATEWAY),
    540: _Meaning(ConfigurationError, "The project is paused.", "Restore it in Supabase's dashboard."),
}
_REDIRECT: Final = _Meaning(
    ConfigurationError,
    "The project's url answers with a redirect.",
    "Use the address that it leads to: with https://, and without a page behind it.",
)
_UNKNOWN: Final = _Meaning(DatabaseError)


def from_code(code: str | None) -> SupabaseMemoryError:
    """The error for a server's code, with the next action.

    Args:
        code: An SQLSTATE or a PostgREST code; `None` if unknown.

    Returns:
        An instance to raise; `DatabaseError` for a code that is not in the table.
    """
    known = code or ""
    prefixes = (known[:length] for length in range(len(known), 0, -1))
    meaning = next((_CODES[prefix] for prefix in prefixes if prefix in _CODES), _UNKNOWN)
    return meaning.kind(meaning.message, code=code, hint=meaning.hint)


def from_status(status: int, retry_after_seconds: float | None = None) -> SupabaseMemoryError:
    """The error for an HTTP status that came with no code of the database's.

    Args:
        status: The status; none of success.
        retry_after_seconds: How long the server asks to wait, in seconds, if it says so.

    Returns:
        An instance to raise; `DatabaseError` for a status that is not in the table.
    """
    kind, message, hint = _STATUSES.get(status, _REDIRECT if 300 <= status < 400 else _UNKNOWN)
    if issubclass(kind, UnavailableError):
        return kind(message, code=str(status), hint=hint, retry_after_seconds=retry_after_seconds)
    return kind(message, code=str(status), hint=hint)


def refused(constraint: str | None) -> InvalidInputError:
    """The error for a value that a check of the database refuses.

    Args:
        constraint: The name of the check, if the server gave it.
    """
    if not constraint:
        return InvalidInputError(code="23514")
    return InvalidInputError(
        f"The database refused a value by its check {constraint}.",
        code="23514",
        hint="Change the value that the name tells of; trying again will not help.",
    )
