"""Addresses of databases and keys, checked where they are passed; a message never holds a key or a password."""

from __future__ import annotations

import re
from typing import Any, Final
from urllib.parse import urlsplit

from langchain_supabase_memory.checks import kind, wrong
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

_URL: Final = "https://<project ref>.supabase.co"
_CONN_STRING: Final = "postgresql://user:password@host:5432/postgres"
_SETTINGS: Final = "Copy it from the project's API settings."
_POSTGRES: Final = re.compile(r"(postgres|postgresql)://", re.IGNORECASE)
_POSTGRES_PORTS: Final = frozenset({5432, 6543, 54322})
_PLACEHOLDER: Final = re.compile(r"\[(YOUR[ _-])?PASSWORD\]|<PASSWORD>|YOUR[_-]PASSWORD", re.IGNORECASE)


def data_api(url: object, key: object, rest_path: object) -> str:
    """The address of the Data API, if url, key and path can be right.

    Args:
        url: The project's url.
        key: The project's key.
        rest_path: Where the Data API lies under the url.

    Raises:
        ConfigurationError: One of them is none.
    """
    if isinstance(url, str) and isinstance(key, str) and key.startswith(("http://", "https://")):
        raise ConfigurationError("The url and the key are swapped.", hint="Pass the url first: from_url(url, key).")
    checked = _url(url)
    if not isinstance(key, str) or not key or not key.isascii() or any(c.isspace() for c in key):
        what = "missing" if key is None or key == "" else f"no key but {_no_key(key)}"
        raise ConfigurationError(f"The project's key is {what}.", hint=_SETTINGS)
    if not isinstance(rest_path, str) or (rest_path and not rest_path.startswith("/")):
        raise wrong("rest_path", "a path that begins with / or is empty", rest_path, 'Leave it out: "/rest/v1".')
    path = rest_path.rstrip("/")
    if path and checked.endswith(path):
        raise ConfigurationError(
            f"The project's url ends with {path}, which is added to it.", hint=f"Pass the url without {path}."
        )
    return checked + path


def _url(url: object) -> str:
    if hasattr(url, "supabase_url"):
        raise wrong("url", "the project's url", url, "For a client of yours use SupabaseMemory.from_client(client).")
    if not isinstance(url, str):
        raise wrong("url", "the project's url", url, f"Pass {_URL!r}, from the project's API settings.")
    given = url.strip().rstrip("/")
    if _POSTGRES.match(given):
        raise ConfigurationError(
            "The project's url is a connection string.", hint="Use SupabaseMemory.from_conn_string(conn_string)."
        )
    if not given.startswith(("http://", "https://")):
        raise ConfigurationError(
            "The project's url must begin with https://.", hint=f"Pass {_URL!r}, from the project's API settings."
        )
    try:
        parts = urlsplit(given)
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if not host:
        raise ConfigurationError("The project's url names no host.", hint=f"Pass {_URL!r}.")
    if host in ("supabase.com", "app.supabase.com", "www.supabase.com"):
        raise ConfigurationError(
            "The project's url is a page of Supabase's dashboard.",
            hint=f"Pass {_URL!r}; the project ref is in the dashboard's address.",
        )
    if port in _POSTGRES_PORTS:
        raise ConfigurationError(
            f"The project's url names port {port}, where Postgres listens.",
            hint="Leave the port out (54321 on a local Supabase), or use SupabaseMemory.from_conn_string(conn_string).",
        )
    return given


def _no_key(key: object) -> str:
    return "a text with spaces or signs that no key has" if isinstance(key, str) else kind(key)


def postgres(conn_string: object) -> dict[str, Any]:
    """The parts of a connection string, if it is one.

    Args:
        conn_string: What was passed as one.

    Raises:
        ConfigurationError: It is none.
        MissingDependencyError: The extra `postgres` is not installed.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingDependencyError("A direct connection to Postgres", "postgres") from None
    if not isinstance(conn_string, str):
        hint = f"Pass {_CONN_STRING!r}; where it comes from os.environ, set it there."
        raise wrong("conn_string", "a connection string", conn_string, hint)
    given = conn_string.strip()
    if given.lower().startswith(("http://", "https://")):
        raise ConfigurationError(
            "The connection string is a url.", hint="Use SupabaseMemory.from_url(url, key) for the Data API."
        )
    if not given:
        raise ConfigurationError("The connection string is empty.", hint=f"Pass {_CONN_STRING!r}.")
    if re.match(r"postgres(ql)?\+\w+://", given):
        raise ConfigurationError(
            "The connection string is one of SQLAlchemy.", hint="Begin it with postgresql://, without the driver."
        )
    try:
        parts = conninfo_to_dict(given)
    except psycopg.Error:
        raise ConfigurationError("The connection string cannot be parsed.", hint=_ENCODE) from None
    if _PLACEHOLDER.search(str(parts.get("password") or "")):
        raise ConfigurationError(
            "The connection string still has the placeholder of a password.",
            hint="Put the database's password in its place; Supabase's dashboard can reset it.",
        )
    host, port, name = (str(parts.get(part) or "") for part in ("host", "port", "dbname"))
    if "@" in host or "@" in name or not all(each.isdecimal() for each in port.split(",") if each):
        raise ConfigurationError("The password in the connection string has signs that are not encoded.", hint=_ENCODE)
    return parts


_ENCODE: Final = (
    f"It looks like {_CONN_STRING}; percent-encode special characters of the password: %40 for @, %2F for /, %25 for %."
)
