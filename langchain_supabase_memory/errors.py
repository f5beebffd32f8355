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
├── EmbeddingError               the embedder failed, or its vectors are of no use
├── OutboxFullError              too many failed writes are waiting; this one was not accepted
├── UnavailableError             nothing is wrong with the call; it may be tried again  (retried by itself first)
└── DatabaseError                anything else the server answered
```

A message of ours never holds what a user wrote, a key or a password: servers put row contents into their error
texts, so only their code is kept (`error.code`), and the original is not chained.
"""

from __future__ import annotations

from typing import Final


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


class UnavailableError(SupabaseMemoryError):
    """The server could not be reached, or asked to come back later."""

    default_message = "The database could not be reached in time."
    default_hint = "Check the address and the network; the call is safe to repeat."


class DatabaseError(SupabaseMemoryError):
    """The server answered with an error that has no class of its own."""

    default_message = "The database answered with an error."
    default_hint = "Look the code up in the Postgres or PostgREST documentation; the server's log has the details."


# The longest matching prefix wins. Sources: PostgreSQL's appendix A, PostgREST's error reference.
_CLASSES: Final[dict[str, type[SupabaseMemoryError]]] = {
    "08": UnavailableError,  # connection exceptions
    "22": InvalidInputError,  # data exceptions
    "23": InvalidInputError,  # constraint violations
    "28": AuthenticationError,  # invalid password or role
    "3D000": ConfigurationError,  # no such database
    "3F000": SchemaMissingError,  # no such schema
    "40": UnavailableError,  # serialization failure, deadlock
    "42501": PermissionDeniedError,
    "42883": SchemaMissingError,  # no such function
    "42P01": SchemaMissingError,  # no such table
    "53": UnavailableError,  # out of connections, memory, disk
    "55P03": UnavailableError,  # lock not available in time
    "57": UnavailableError,  # statement timeout, shutdown, starting up
    "PGRST000": UnavailableError,  # the Data API has no connection to the database
    "PGRST001": UnavailableError,
    "PGRST002": UnavailableError,
    "PGRST003": UnavailableError,  # no connection free in its pool
    "PGRST106": ConfigurationError,  # schema not exposed
    "PGRST202": SchemaMissingError,  # no such function
    "PGRST301": AuthenticationError,  # token not valid
    "PGRST302": AuthenticationError,  # no anonymous access
    "PGRST303": AuthenticationError,  # claims not valid
    "PT400": InvalidInputError,  # raised by our own functions
    "PT404": NotFoundError,
    "PT409": MigrationConflictError,
}

# Where a gateway answers in place of the database, its HTTP status is all there is.
_STATUSES: Final[dict[str, type[SupabaseMemoryError]]] = {
    "401": AuthenticationError,
    "403": PermissionDeniedError,
    "404": ConfigurationError,
    "408": UnavailableError,
    "429": UnavailableError,
    "500": UnavailableError,
    "502": UnavailableError,
    "503": UnavailableError,
    "504": UnavailableError,
}


def from_code(code: str | None) -> SupabaseMemoryError:
    """The error for a server's code, with its default message and next action.

    Args:
        code: An SQLSTATE, a PostgREST code, or an HTTP status where a gateway gave nothing else; `None` if unknown.

    Returns:
        An instance to raise; `DatabaseError` for a code that is not in the table.
    """
    known = code or ""
    if len(known) == 3:
        return _STATUSES.get(known, DatabaseError)(code=code)
    prefixes = (known[:length] for length in range(len(known), 0, -1))
    return next((_CLASSES[prefix] for prefix in prefixes if prefix in _CLASSES), DatabaseError)(code=code)
