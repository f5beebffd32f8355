"""Every error that this package raises, and the table that maps a server's code to a class.

```
SupabaseMemoryError
├── InvalidInputError            an argument cannot be stored or looked up           (also a ValueError)
├── ConfigurationError           the memory is configured incorrectly                (also a ValueError)
│   └── MissingDependencyError   an extra of this package is not installed           (also an ImportError)
├── SchemaError                  the database does not match this release
│   ├── SchemaMissingError       the schema is not installed
│   ├── SchemaOutdatedError      the schema is from an older (or newer) release
│   └── MigrationConflictError   the applied migrations differ from the requested ones
├── AccessError                  the database refused this caller
│   ├── AuthenticationError      the key, the password or the token is wrong
│   │   └── TokenExpiredError    the token has expired
│   └── PermissionDeniedError    row level security or a missing grant
├── NotFoundError                the named object does not exist                     (also a LookupError)
├── TooLargeError                one call was larger than the server accepts
├── EmbeddingError               the embedder failed or returned invalid vectors
├── RerankingError               the reranker failed or returned an invalid order
├── ExpansionError               the query expander failed
├── UnavailableError             the call was fine and may be repeated               (retried automatically first)
└── DatabaseError                any other error from the server
```

Messages of these errors never contain user content, a key or a password: servers put row contents into their error
texts, so only the code is retained (`error.code`), and the original error is not chained.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple


class SupabaseMemoryError(Exception):
    """The base class of every error of this package.

    Args:
        message: What went wrong, in one sentence; by default the class's own sentence.
        code: The server's code, if a server answered: an SQLSTATE such as `42501`, or PostgREST's `PGRST…`.
        hint: What to do next, in one sentence; by default the class's own hint.
    """

    default_message: str = "The memory could not do this."
    default_hint: str = "Check the log; if it persists, please report this."

    def __init__(self, message: str | None = None, *, code: str | None = None, hint: str | None = None) -> None:
        self.code = code
        self.hint = self.default_hint if hint is None else hint
        self.message = message or self.default_message
        super().__init__(self.message)

    def __reduce__(self) -> tuple[Any, ...]:
        """Support pickle: another process gets the same class, message, code and hint."""
        return type(self).__new__, (type(self), *self.args), self.__dict__

    @property
    def reason(self) -> str:
        """The message, with the code if there is one."""
        return f"{self.message} [{self.code}]" if self.code else self.message

    def __str__(self) -> str:
        """Return the message, the code if there is one, and the hint."""
        return f"{self.reason} {self.hint}".rstrip()


class InvalidInputError(SupabaseMemoryError, ValueError):
    """An argument cannot be stored or looked up."""

    default_message = "The database refused a value."
    default_hint = "Check the ids, times and messages that were passed."


class ConfigurationError(SupabaseMemoryError, ValueError):
    """The memory is configured incorrectly."""

    default_message = "There is no such database, schema or address."
    default_hint = "Check the project's url or the connection string."


class MissingDependencyError(ConfigurationError, ImportError):
    """A required extra of this package, or a provider's own package, is not installed.

    Args:
        feature: What needs it.
        extra: The extra.
        package: The package, if it is not part of an extra.
    """

    def __init__(self, feature: str, extra: str = "", *, package: str | None = None) -> None:
        wanted = package or f"'langchain-supabase-memory[{extra}]'"
        super().__init__(f"{feature} needs packages that are not installed.", hint=f"Run: pip install {wanted}")


class SchemaError(SupabaseMemoryError):
    """The database does not match this release."""

    default_message = "The database does not match this release."
    default_hint = "Run `supabase-memory doctor`, which says what is missing, then `supabase-memory migrate`."


class SchemaMissingError(SchemaError):
    """The schema is not in the database, or the Data API does not know it yet."""

    default_message = "The memory's schema is not in this database."
    default_hint = (
        "Run `supabase-memory migrate`, or paste the output of `supabase-memory sql` into Supabase's SQL editor."
    )


class SchemaOutdatedError(SchemaError):
    """The database's schema is from another release of this package."""

    default_message = "The memory's schema in this database is of another release."
    default_hint = (
        "Run `supabase-memory migrate` with this release of langchain-supabase-memory; or install the database's "
        "release, if that is newer: `supabase-memory doctor` names it."
    )


class MigrationConflictError(SchemaError):
    """The applied migrations differ from the requested ones."""

    default_message = "The database was set up differently."
    default_hint = "Use the migration files of a release as they are, or begin with an empty database."


class AccessError(SupabaseMemoryError):
    """The database refused this caller."""

    default_message = "The database refused this caller."
    default_hint = "Check the key or the password, and whose token is passed."


class AuthenticationError(AccessError):
    """The key, the password or the token is wrong."""

    default_message = "The key, password or access token was not accepted."
    default_hint = "Check the project's url and key (or the connection string), and that the token is of this project."


class TokenExpiredError(AuthenticationError):
    """The user's access token has expired."""

    default_message = "The access token has expired."
    default_hint = "Refresh the session and pass the new token to for_token, or a function that gives the present one."


class PermissionDeniedError(AccessError):
    """Row level security denies the call, or a grant is missing."""

    default_message = "The database does not permit this caller to do this."
    default_hint = (
        "Beside a publishable key pass the signed-in user's access_token, which reaches that user's own conversations "
        "only; a server uses the secret (service role) key, or a direct connection as the role that ran the migration, "
        "or as one that was granted service_role."
    )


class NotFoundError(SupabaseMemoryError, LookupError):
    """The named object does not exist, or belongs to another user."""

    default_message = "The requested object does not exist."
    default_hint = "Check that it exists: it may have been deleted."


class EmbeddingError(SupabaseMemoryError):
    """The embedder failed or returned invalid vectors."""

    default_message = "The embedder failed."
    default_hint = "Check the embedder's key and network; keyword search still finds what is stored."


class RerankingError(SupabaseMemoryError):
    """The reranker failed or returned an invalid order."""

    default_message = "The reranker failed."
    default_hint = "Check the reranker; recall still returns the first stage's order."


class ExpansionError(SupabaseMemoryError):
    """The query expander failed."""

    default_message = "The query expander failed."
    default_hint = "Check the model of expand=; the original query is still used."


class ToneError(SupabaseMemoryError):
    """The tone of what was said could not be rated."""

    default_message = "The function that rates the tone failed."
    default_hint = "Check the function of tone=; chunks are stored without a tone."


class OutboxError(SupabaseMemoryError):
    """A failed write could not be queued: the outbox is full, or the owner is unknown."""

    default_message = "Earlier writes failed and the outbox is full; these messages were not accepted."
    default_hint = "Bring the database back, then call flush(), or raise outbox_limit."


class TooLargeError(SupabaseMemoryError):
    """One call passed or requested more than the database, or a gateway before it, accepts; nothing was changed."""

    default_message = "One call may not pass or read this much."
    default_hint = "Pass or read less at once, or raise the limit in memory_private.limits."


class UnavailableError(SupabaseMemoryError):
    """The server could not be reached, did not answer, or asked to retry later.

    Args:
        message: As for `SupabaseMemoryError`.
        code: As for `SupabaseMemoryError`.
        hint: As for `SupabaseMemoryError`.
        retry_after_seconds: How long the server asks to wait, in seconds; `None` if it does not say.
        is_away: Whether the database is unavailable for every call. True by default, unless the code means that this
            one call conflicted with another, took too long, or was rate-limited.
        was_sent: Whether the call was sent; while the database is unavailable, the circuit breaker refuses calls
            unsent.
    """

    default_message = "The database is not available."
    default_hint = "Check the address, the port and the network; the call is safe to repeat."

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        hint: str | None = None,
        retry_after_seconds: float | None = None,
        is_away: bool | None = None,
        was_sent: bool = True,
    ) -> None:
        super().__init__(message, code=code, hint=hint)
        self.was_sent = was_sent
        self.retry_after_seconds = retry_after_seconds
        self.is_away = _OF_ONE_CALL.fullmatch(code or "") is None if is_away is None else is_away


class DatabaseError(SupabaseMemoryError):
    """The server answered with an error that has no class here."""

    default_message = "The database answered with an error."
    default_hint = "Look the code up in the Postgres or PostgREST documentation; the server's log has the details."


_OF_ONE_CALL: Final = re.compile("(40|55|58)...|25P0[34]|53100|53200|53400|57014|XX000|429")
"""Codes of an `UnavailableError` that say nothing about the next call: SQLSTATEs, and the HTTP status for rate limits.

A full disk is one of them: writes are refused, but reads work.
"""


_CODE: Final = re.compile(r"[\w.-]{1,64}")


class _Meaning(NamedTuple):
    """The meaning of a code or status: the class, and a message and hint where the class's defaults would be wrong."""

    kind: type[SupabaseMemoryError]
    message: str | None = None
    hint: str | None = None


_AGAIN: Final = "Nothing is set up wrongly; the call is safe to repeat."
_STATE: Final = "Look at the project's state in Supabase's dashboard; the call is safe to repeat."
_FULL: Final = "Use a pooler and fewer workers, or a larger database; the call is safe to repeat."
_SLOWER: Final = "Ask for less at once, or raise the role's statement_timeout; the call is safe to repeat."

_BROKEN_OFF: Final = _Meaning(UnavailableError, "The database canceled the call because it took too long.", _SLOWER)
_STARTING: Final = _Meaning(UnavailableError, "The database is starting up or shutting down.", _STATE)
_NO_DATABASE: Final = _Meaning(UnavailableError, "The Data API has no connection to the database.", _STATE)
_NO_API: Final = _Meaning(
    ConfigurationError,
    "There is no Data API at this address.",
    "Check the project's url and port, without a path behind it, and rest_path: leave it out on Supabase, pass "
    'rest_path="" for a bare PostgREST.',
)
_LOST: Final = _Meaning(UnavailableError, "The Data API lost the database during the call.", _STATE)
_BAD_GATEWAY: Final = _Meaning(UnavailableError, "A gateway answered instead of the database.", _STATE)

# The longest matching prefix wins. Sources: PostgreSQL's appendix A, PostgREST's error reference.
_CODES: Final[dict[str, _Meaning]] = {
    "08": _Meaning(UnavailableError, "The connection to the database was lost."),
    "22": _Meaning(InvalidInputError),  # data exceptions
    "23": _Meaning(InvalidInputError),  # constraint violations
    "25006": _Meaning(
        ConfigurationError,
        "The database takes no writes: it is a read replica, or read-only.",
        "Write at the primary's address; if this is the primary, look whether its disk is full, where "
        "Supabase makes it read-only.",
    ),
    "25P03": _BROKEN_OFF,  # idle in a transaction
    "25P04": _BROKEN_OFF,  # transaction_timeout
    "28": _Meaning(AuthenticationError),  # invalid password or role
    "3D000": _Meaning(ConfigurationError),  # no such database
    "3F000": _Meaning(SchemaMissingError),  # no such schema
    "40": _Meaning(UnavailableError, "The call met another one and was rolled back.", _AGAIN),
    "42501": _Meaning(PermissionDeniedError),
    # No such type: pgvector was moved to another schema than the functions expect.
    "42704": _Meaning(
        SchemaOutdatedError, "The memory's functions refer to an object that is not in the expected schema."
    ),
    "42883": _Meaning(SchemaMissingError),  # no such function
    "42P01": _Meaning(SchemaMissingError),  # no such table
    "53": _Meaning(UnavailableError, "The database is out of connections, memory or disk.", _FULL),
    "53100": _Meaning(
        UnavailableError,
        "The disk of the database is full; reads go on.",
        "Free space or enlarge the disk; the call is safe to repeat.",
    ),
    "55P03": _Meaning(UnavailableError, "The call waited too long for a lock.", _AGAIN),
    "57": _STARTING,
    "XX000": _Meaning(
        UnavailableError, "The database failed inside; it does while its functions are replaced.", _AGAIN
    ),
    "57014": _BROKEN_OFF,
    "57P04": _Meaning(ConfigurationError, "The database was deleted."),
    "58": _Meaning(
        UnavailableError,
        "The database could not read or write a file.",
        "Look at the disk and the log of the server; the call is safe to repeat.",
    ),
    "58P01": _Meaning(
        ConfigurationError,
        "The server lacks a file of an extension, or of its own.",
        "Look whether pgvector is installed on this server, and into its log.",
    ),
    "PGRST000": _NO_DATABASE,
    "PGRST001": _NO_DATABASE,
    "PGRST002": _NO_DATABASE,
    "PGRST003": _Meaning(UnavailableError, "The Data API had no connection to the database free in time.", _FULL),
    "PGRST106": _Meaning(
        ConfigurationError,
        "The Data API does not expose the schema public.",
        "Add public to the exposed schemas in the project's API settings.",
    ),
    "PGRST125": _NO_API,  # no such path
    "PGRST202": _Meaning(SchemaMissingError),  # no such function
    "PGRST301": _Meaning(AuthenticationError),  # token not valid; see `token_error`
    "PGRST302": _Meaning(AuthenticationError),  # no anonymous access
    "PGRST303": _Meaning(AuthenticationError),  # claims not valid
    "PT400": _Meaning(InvalidInputError),  # raised by our own functions
    "PT403": _Meaning(PermissionDeniedError),
    "PT404": _Meaning(NotFoundError),
    "PT409": _Meaning(MigrationConflictError),
    "PT413": _Meaning(TooLargeError),
}

# When a gateway answers instead of the database, only its HTTP status is known. Codes from 520 on are Cloudflare's, and
# 540 is Supabase's own.
_STATUSES: Final[dict[int, _Meaning]] = {
    401: _Meaning(AuthenticationError),
    403: _Meaning(PermissionDeniedError),
    404: _NO_API,
    405: _NO_API,
    407: _Meaning(
        ConfigurationError,
        "A proxy asks for a user and a password.",
        "Name them in HTTPS_PROXY, or add the project's host to NO_PROXY.",
    ),
    408: _Meaning(UnavailableError, "The server gave up waiting for the request.", _AGAIN),
    413: _Meaning(TooLargeError),
    425: _Meaning(UnavailableError, "The server asks for the request once more, later.", _AGAIN),
    429: _Meaning(
        UnavailableError,
        "The server has had too many requests.",
        "Send fewer at once; the call is safe to repeat later.",
    ),
    431: _Meaning(
        TooLargeError,
        "The headers of the request are too long for the server.",
        "Take claims out of the access token, or raise the limit of the proxy.",
    ),
    501: _NO_API,
    505: _NO_API,
    511: _Meaning(
        ConfigurationError,
        "This network wants a sign-in before it lets a request out.",
        "Sign in to the network, or use another one.",
    ),
    **dict.fromkeys([502, 503, 504, *range(520, 528), 530], _BAD_GATEWAY),
    540: _Meaning(ConfigurationError, "The project is paused.", "Restore it in Supabase's dashboard."),
}
_REDIRECT: Final = _Meaning(
    ConfigurationError,
    "The project's url answers with a redirect.",
    "Use the address that it leads to: with https://, and without a page behind it.",
)
_FAILED: Final = _Meaning(UnavailableError, "The server failed before the database answered.", _STATE)
_UNKNOWN: Final = _Meaning(DatabaseError)
_NO_CODE: Final = _Meaning(
    DatabaseError,
    "Something before the database answered, with an HTTP status that is not the database's.",
    "Look whether the url leads to the Data API, and which proxy stands before it.",
)
_STOPPED: Final = _Meaning(
    AuthenticationError,
    "A web page came instead of an answer: a proxy, a firewall or a sign-in is in front of the Data API.",
    "Open the project's url from this machine, and look at network restrictions; then check the key.",
)


def from_code(code: str | None) -> SupabaseMemoryError:
    """Return the error for a server's code, with a hint.

    Args:
        code: An SQLSTATE or a PostgREST code; `None` if unknown.

    Returns:
        An instance to raise; `DatabaseError` for a code that is not in the table.
    """
    known = code or ""
    prefixes = (known[:length] for length in range(len(known), 0, -1))
    meaning = next((_CODES[prefix] for prefix in prefixes if prefix in _CODES), _UNKNOWN)
    return meaning.kind(meaning.message, code=code, hint=meaning.hint)


def from_error(code: str, message: str | None, hint: str | None) -> SupabaseMemoryError:
    """Return the error that one of our own SQL functions raised; its text has no user content.

    Args:
        code: Its code, `PT…`.
        message: Its message.
        hint: Its hint; by default the class's own.
    """
    kind = type(from_code(code))
    said = [f"{_capitalized(text)}." if text else None for text in (message, hint)]
    return kind(said[0], code=code, hint=said[1])


def _capitalized(text: str) -> str:
    """Return a sentence that begins with a capital, or with the name of a function or an argument as it is."""
    return text if "_" in text.partition(" ")[0] else f"{text[:1].upper()}{text[1:]}"


def node_unavailable(code: str) -> UnavailableError:
    """Return the error for a server that cannot reach the server that holds the rows, such as a Citus node.

    Args:
        code: The SQLSTATE that it passes on.

    Returns:
        An instance to raise. Calls for other users may still work, so `is_away` is false.
    """
    return UnavailableError(
        "The database answers, and a node of it that this call needs does not.",
        code=code,
        hint="Start that node, or look at the network between the servers; the call is safe to repeat.",
        is_away=False,
    )


def from_status(status: int, *, is_page: bool = False) -> SupabaseMemoryError:
    """Return the error for an HTTP status without a database code.

    Args:
        status: The status, not one of success.
        is_page: Whether the body is a page, or anything else but a JSON document.

    Returns:
        An instance to raise. A 5xx status that is not in the table is an `UnavailableError`, a 4xx a `DatabaseError`.
    """
    if is_page and status in (401, 403):
        meaning = _STOPPED
    else:
        rest = _REDIRECT if status < 400 else _NO_CODE if status < 500 else _FAILED
        meaning = _STATUSES.get(status, rest)
    kind, message, hint = meaning
    return kind(message, code=str(status), hint=hint)


_OF_TOKENS: Final[tuple[tuple[re.Pattern[str], _Meaning], ...]] = (
    (re.compile("expired", re.IGNORECASE), _Meaning(TokenExpiredError)),
    (
        re.compile("not ?yet ?valid|issued ?at ?future", re.IGNORECASE),
        _Meaning(
            AuthenticationError,
            "The access token is not valid yet.",
            "Set the clocks of the server and of what issues tokens by NTP; claims nbf and iat lie in the future.",
        ),
    ),
    (
        re.compile("Claims.*Decode|parsing claims|claim must be", re.IGNORECASE),
        _Meaning(
            AuthenticationError,
            "A claim of the access token is of a wrong type.",
            "Correct what issues the token: exp, nbf and iat are numbers, sub and role are texts.",
        ),
    ),
    (
        re.compile("signature|suitable key", re.IGNORECASE),
        _Meaning(
            AuthenticationError,
            "The key or the access token is signed by another project, or by an old secret.",
            "Check the project's url and key: both are of the same project, and so is the session.",
        ),
    ),
)
"""PostgREST's texts about a token, which all share one code; the first match wins."""


def token_error(code: str, text: str) -> SupabaseMemoryError:
    """Return the error for an access token or key that PostgREST rejects.

    Args:
        code: PostgREST's code.
        text: PostgREST's message, which is not retained.
    """
    meaning = next((meaning for pattern, meaning in _OF_TOKENS if pattern.search(text)), None)
    return from_code(code) if meaning is None else meaning.kind(meaning.message, code=code, hint=meaning.hint)


def role_error(code: str) -> SupabaseMemoryError:
    """Return the error for an access token whose role does not exist, or that the Data API may not assume.

    Args:
        code: The SQLSTATE.
    """
    return AuthenticationError(
        "The database does not take the role of the access token.",
        code=code,
        hint="The claim role is anon, authenticated or service_role; look which project the token is of.",
    )


def connection_lost(status: int) -> SupabaseMemoryError:
    """Return the error for the empty code that PostgREST sends when its connection to the database broke.

    Args:
        status: The HTTP status, which is then 400 or 503.
    """
    return UnavailableError(_LOST.message, code=str(status), hint=_LOST.hint, is_away=True)


_WORDS: Final[tuple[tuple[re.Pattern[str], _Meaning], ...]] = (
    (
        re.compile("startup parameter"),
        _Meaning(
            ConfigurationError,
            "The pooler does not take a parameter of the connection string.",
            "Take options= and other settings of the server out of it, or connect without the pooler.",
        ),
    ),
    (
        re.compile("response to SSL negotiation|expected authentication request"),
        _Meaning(
            ConfigurationError,
            "The server at this address is not Postgres.",
            "Check host and port (5432, or 6543 of a pooler); for the project's url use SupabaseMemory.from_url, or "
            "--url on the command line.",
        ),
    ),
    (
        re.compile("does not support SSL"),
        _Meaning(
            ConfigurationError, "The server does not speak TLS.", "Take sslmode=require out of the connection string."
        ),
    ),
    (
        re.compile("certificate|SSL error", re.IGNORECASE),
        _Meaning(
            ConfigurationError,
            "The server's certificate is not accepted.",
            "Pass sslrootcert=… with the certificate from the database settings, or sslmode=require.",
        ),
    ),
    (
        re.compile("tenant (or user not found|identifier)|tenant/user|ENOTFOUND", re.IGNORECASE),
        _Meaning(
            AuthenticationError,
            "The pooler does not know this project.",
            "Behind a pooler the user is postgres.<project ref>, and the host names the project's region.",
        ),
    ),
    (
        re.compile("database system is|recovery mode"),
        _STARTING,
    ),
    (
        re.compile("pg_hba"),
        _Meaning(
            AuthenticationError,
            "Postgres does not let this user in from here.",
            "Add ?sslmode=require to the connection string, and look at the project's network restrictions.",
        ),
    ),
    (
        re.compile("password|authentication|role … (does not exist|is not permitted)"),
        _Meaning(
            AuthenticationError,
            "Postgres did not accept the user or the password.",
            "Check both in the connection string; percent-encode special characters of the password.",
        ),
    ),
    (
        re.compile("database … does not exist"),
        _Meaning(
            ConfigurationError,
            "There is no such database on this server.",
            "Check the last part of the connection string; on Supabase it is postgres.",
        ),
    ),
    (
        re.compile("too many (clients|connections)|no more connections|connection slots|[Mm]ax client"),
        _Meaning(UnavailableError, "The database is out of connections.", _FULL),
    ),
    (
        re.compile("invalid [\\w ]*value|invalid port"),
        _Meaning(
            ConfigurationError,
            "The connection string has a parameter with a value that Postgres does not take.",
            "Look at the port, and at what stands behind the question mark, such as sslmode=require.",
        ),
    ),
    (
        re.compile("on the default socket .*(refused|No such file)"),
        _Meaning(
            UnavailableError,
            "Postgres could not be reached: the connection string names no host, and nothing listens on this machine.",
            "Name the host: postgresql://user:password@host:5432/postgres. The call is safe to repeat.",
        ),
    ),
    (
        re.compile("on socket .*(refused|No such file)"),
        _Meaning(
            UnavailableError,
            "Postgres could not be reached: no server listens on this socket.",
            "Start the server; the call is safe to repeat.",
        ),
    ),
    (
        re.compile("[Cc]onnection refused|No such file"),
        _Meaning(
            UnavailableError,
            "Postgres could not be reached: nothing listens at this host and port.",
            "Check both, and that the server runs; the call is safe to repeat.",
        ),
    ),
    (
        re.compile("time(d )?out|unreachable|No route|Cannot assign"),
        _Meaning(
            UnavailableError,
            "Postgres could not be reached: it does not answer, or there is no way to its host.",
            "Check that the server runs, host, port and firewalls; Supabase's direct host db.<project ref>.supabase.co "
            "is IPv6 only: from a network without IPv6 use the session pooler's connection string. The call is safe to "
            "repeat.",
        ),
    ),
)
"""libpq's texts about a failed connection, which have no code; the first match wins."""


def connection_failed(text: str) -> SupabaseMemoryError:
    """Return the error for a failed connection to Postgres.

    Args:
        text: libpq's message, which is not retained.
    """
    text = re.sub(r'on socket "(/var/run/postgresql|/run/postgresql|/tmp)/\.s\.', 'on the default socket "', text)
    text = re.sub(r"\"[^\"]*\"|'[^']*'", "…", text)  # names, which may be anything
    if re.search("resolve host|translate host name", text):
        return host_not_found(is_known_to_be_none=not re.search("[Tt]emporary failure|[Tt]ry again", text))
    found = next((meaning for pattern, meaning in _WORDS if pattern.search(text)), None)
    if found is None:
        return UnavailableError("Postgres could not be reached.")
    return found.kind(found.message, hint=found.hint)


def host_not_found(*, is_known_to_be_none: bool) -> SupabaseMemoryError:
    """Return the error for a host name that does not resolve.

    Args:
        is_known_to_be_none: Whether DNS says that the name does not exist, as opposed to not answering.
    """
    if is_known_to_be_none:
        return ConfigurationError(
            "There is no host of this name.",
            hint="Check the project ref in the address. A paused or deleted project has none; Supabase's direct host "
            "db.<project ref>.supabase.co is IPv6 only: without IPv6 use the session pooler's connection string.",
        )
    return UnavailableError(
        "The name service did not answer.", hint="Check the network's DNS; the call is safe to repeat."
    )


def code_of(error: BaseException) -> str | None:
    """Return the code of any error, including a provider's, if it has a short string or a status as its code.

    Args:
        error: An error, from this package or another.
    """
    for name in ("code", "status_code", "status", "sqlstate"):
        found = getattr(error, name, None)
        if isinstance(found, (str, int)) and not isinstance(found, bool) and _CODE.fullmatch(str(found)):
            return str(found)
    return None


def is_refusal(constraint: str | None) -> InvalidInputError:
    """Return the error for a value that a check constraint of the database refuses.

    Args:
        constraint: The name of the constraint, if the server sent it.
    """
    if not constraint:
        return InvalidInputError(code="23514")
    return InvalidInputError(
        f"The database refused a value by its check {constraint}.",
        code="23514",
        hint="Change the value that the check's name refers to; retrying will not help.",
    )
