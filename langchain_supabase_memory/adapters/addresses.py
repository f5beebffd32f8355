"""Check database addresses and keys where they are passed; error messages never contain a key or a password."""

from __future__ import annotations

import base64
import json
import re
from typing import Any, Final
from urllib.parse import urlsplit

from langchain_supabase_memory.checks import type_name, wrong_type
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

_URL: Final = "https://<project ref>.supabase.co"
_CONN_STRING: Final = "postgresql://user:password@host:5432/postgres"
_SETTINGS: Final = "Copy it from the project's API settings."
_DIRECTLY: Final = "SupabaseMemory.from_conn_string(conn_string), or --database-url on the command line"
_OVER_HTTP: Final = "SupabaseMemory.from_url(url, key), or --url and --key on the command line"
_POSTGRES: Final = re.compile(r"(postgres|postgresql)://", re.IGNORECASE)
_POSTGRES_PORTS: Final = frozenset({5432, 6543, 54322})
_PORTS: Final = range(1, 65_536)
_SERVICE: Final = re.compile(r"/(auth|functions|graphql|realtime|rest|storage)/v1\b")
_HOSTED: Final = (".supabase.co", ".supabase.in", ".supabase.red")
_PLACEHOLDER: Final = re.compile(r"\[(YOUR[ _-])?PASSWORD\]|<PASSWORD>|YOUR[_-]PASSWORD", re.IGNORECASE)


def data_api(url: object, key: object, rest_path: object) -> str:
    """Return the Data API's address, after checking url, key and path.

    Args:
        url: The project's url.
        key: The project's key.
        rest_path: The path of the Data API under the url.

    Raises:
        ConfigurationError: One of them is not valid.
    """
    if isinstance(url, str) and isinstance(key, str) and key.startswith(("http://", "https://")):
        raise ConfigurationError("The url and the key are swapped.", hint=f"Pass the url first: {_OVER_HTTP}.")
    checked = _url(url)
    if not isinstance(key, str) or not key or not key.isascii() or any(c.isspace() for c in key):
        what = "missing" if key is None or key == "" else f"no key but {_no_key(key)}"
        raise ConfigurationError(f"The project's key is {what}.", hint=_SETTINGS)
    if not isinstance(rest_path, str) or (rest_path and not rest_path.startswith("/")):
        raise wrong_type("rest_path", "a path that begins with / or is empty", rest_path, 'Leave it out: "/rest/v1".')
    path = rest_path.rstrip("/")
    if path and checked.endswith(path):
        raise ConfigurationError(
            f"The project's url ends with {path}, which is added to it.", hint=f"Pass the url without {path}."
        )
    service = _SERVICE.search(checked)
    if path and service:
        raise ConfigurationError(
            f"The project's url ends with {service[0]}, where one of its services is.",
            hint=f"Pass the url without {service[0]}.",
        )
    return checked + path


def is_publishable(key: str) -> bool:
    """Return whether a project key is public: the publishable key, or the older `anon` key."""
    if key.count(".") != 2:
        return key.startswith("sb_publishable_")
    body = key.split(".")[1]
    try:
        claims = json.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    except ValueError:
        return False
    return isinstance(claims, dict) and claims.get("role") == "anon"


def _url(url: object) -> str:
    if hasattr(url, "supabase_url"):
        raise wrong_type(
            "url", "the project's url", url, "For a client of yours use SupabaseMemory.from_client(client)."
        )
    if not isinstance(url, str):
        raise wrong_type("url", "the project's url", url, f"Pass {_URL!r}, from the project's API settings.")
    given = url.strip()
    if _POSTGRES.match(given):
        raise ConfigurationError("The project's url is a connection string of Postgres.", hint=f"Use {_DIRECTLY}.")
    if not given.startswith(("http://", "https://")):
        raise ConfigurationError(
            "The project's url must begin with https://.", hint=f"Pass {_URL!r}, from the project's API settings."
        )
    given = given.rstrip("/")
    if any(character.isspace() or not character.isprintable() for character in given):
        raise ConfigurationError("The project's url has a space, or a sign that is not seen, in it.", hint=_SETTINGS)
    try:
        parts = urlsplit(given)
        host = parts.hostname
    except ValueError:
        host = None
    if not host:
        raise ConfigurationError("The project's url names no host.", hint=f"Pass {_URL!r}.")
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port is not None and port not in _PORTS:
        raise ConfigurationError(
            "The port in the project's url is no number from 1 to 65535.", hint=f"Leave the port out: {_URL!r}."
        )
    if parts.username or parts.password:
        raise ConfigurationError(
            "The project's url has a user or a password in it.", hint=f"Pass {_URL!r}, and the key by itself."
        )
    if host in ("supabase.com", "app.supabase.com", "www.supabase.com"):
        raise ConfigurationError(
            "The project's url is a page of Supabase's dashboard.",
            hint=f"Pass {_URL!r}; the project ref is in the dashboard's address.",
        )
    if port in _POSTGRES_PORTS:
        raise ConfigurationError(
            f"The project's url names port {port}, where Postgres listens.",
            hint=f"Leave the port out (54321 on a local Supabase), or use {_DIRECTLY}.",
        )
    if parts.query or parts.fragment or (parts.path and host.endswith(_HOSTED) and not _SERVICE.match(parts.path)):
        raise ConfigurationError("The project's url has something behind the host.", hint=f"Pass {_URL!r} alone.")
    return given


def _no_key(key: object) -> str:
    return "a text with spaces or signs that no key has" if isinstance(key, str) else type_name(key)


def postgres(conn_string: object) -> dict[str, Any]:
    """Parse a connection string.

    Args:
        conn_string: The value passed as a connection string.

    Raises:
        ConfigurationError: It is not a valid connection string.
        MissingDependencyError: The extra `postgres` is not installed.
    """
    try:
        import psycopg
        from psycopg.conninfo import conninfo_to_dict
    except ImportError:
        raise MissingDependencyError("A direct connection to Postgres", "postgres") from None
    if not isinstance(conn_string, str):
        hint = f"Pass {_CONN_STRING!r}; where it comes from os.environ, set it there."
        raise wrong_type("conn_string", "a connection string", conn_string, hint)
    given = conn_string.strip()
    if given.lower().startswith(("http://", "https://")):
        raise ConfigurationError("The connection string is a url of the web.", hint=f"Use {_OVER_HTTP}.")
    if not given:
        raise ConfigurationError("The connection string is empty.", hint=f"Pass {_CONN_STRING!r}.")
    if re.match(r"postgres(ql)?\+\w+://", given):
        raise ConfigurationError(
            "The connection string is one of SQLAlchemy.", hint="Begin it with postgresql://, without the driver."
        )
    if not _POSTGRES.match(given) and "=" not in given.partition("://")[0]:
        raise ConfigurationError("The connection string does not begin with postgresql://.", hint=_LOOKS)
    try:
        parts = conninfo_to_dict(given)
    except psycopg.Error as error:
        raise _unparsed(str(error)) from None
    if _PLACEHOLDER.search(str(parts.get("password") or "")):
        raise ConfigurationError(
            "The connection string still has the placeholder of a password.",
            hint="Put the database's password in its place; Supabase's dashboard can reset it.",
        )
    host, port, name = (str(parts.get(part) or "") for part in ("host", "port", "dbname"))
    if "@" in host or "@" in name:
        raise ConfigurationError("The password in the connection string has signs that are not encoded.", hint=_ENCODE)
    if not all(each.isdecimal() and int(each) in _PORTS for each in port.split(",") if each):
        raise ConfigurationError("The port in the connection string is no number from 1 to 65535.", hint=_LOOKS)
    return parts


ENCODING: Final[dict[str, Any]] = {"client_encoding": "utf8"}
"""A keyword for every connection, because `PGCLIENTENCODING` or the connection string may name a narrower encoding."""


def check_encoding(name: str | None) -> None:
    """Refuse a database that cannot store every text.

    Args:
        name: Its encoding, as the server names it; `None` if a pooler does not tell.

    Raises:
        ConfigurationError: The encoding is not UTF8.
    """
    if name not in (None, "", "UTF8"):
        raise ConfigurationError(
            f"The database stores text as {name}, which cannot hold every message.",
            hint="Make one that stores UTF8: create database memory encoding 'UTF8' template template0; and name it "
            "in the connection string.",
        )


def _unparsed(words: str) -> ConfigurationError:
    """Return the error for a string that libpq cannot parse, without libpq's message, which repeats the input."""
    if "query parameter" in words or "connection option" in words:
        return ConfigurationError(
            "The connection string has a parameter that Postgres does not know.",
            hint="Look at what stands behind the question mark, such as sslmode=require.",
        )
    if "IPv6" in words:
        return ConfigurationError("The connection string names no usable host.", hint=_LOOKS)
    return ConfigurationError("The connection string cannot be parsed.", hint=_ENCODE)


_LOOKS: Final = f"It looks like {_CONN_STRING}."
_ENCODE: Final = (
    f"It looks like {_CONN_STRING}, without spaces; percent-encode special characters of the password: %40 for @, "
    "%2F for /, %25 for %."
)
