"""Credentials of a signed-in user, or a callback that returns them. A missing user is an error, never more privileges.

Once a credential was passed, whatever its value, calls are made with it or not at all.
"""

from __future__ import annotations

import base64
import inspect
import json
import time
from collections.abc import Callable, Mapping
from inspect import isawaitable
from typing import TYPE_CHECKING, Any, Final, Generic, TypeVar, cast

from langchain_supabase_memory import documents
from langchain_supabase_memory.checks import type_name
from langchain_supabase_memory.deadline import apart, in_thread
from langchain_supabase_memory.errors import AuthenticationError, ConfigurationError, TokenExpiredError
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    from collections.abc import Awaitable

T = TypeVar("T")

ROLES: Final = frozenset({"anon", "authenticated", "service_role"})
"""The roles that claims may name, so that they cannot name a more powerful role."""


class Credential(Unpicklable, Generic[T]):
    """A credential, or a callback that returns one before each call.

    Args:
        value: The credential, or a (sync or async) function without arguments that returns it.
        checked: Converts it to what a call carries, or raises `AuthenticationError`.

    Raises:
        AuthenticationError: The value is not a credential.
    """

    def __init__(
        self, value: T | Callable[[], Any] | Callable[[], Awaitable[Any]] | object, checked: Callable[[object], T]
    ) -> None:
        self._checked = checked
        self._function = value if callable(value) else None
        self._token = value if isinstance(value, str) else None
        self._value = None if callable(value) else checked(value)

    @property
    def value(self) -> T | None:
        """The value that every call carries; `None` if a callback returns it."""
        return self._value

    @property
    def is_callable(self) -> bool:
        """Whether a callback returns the value before each call, so that it may change."""
        return self._function is not None

    def now(self) -> T:
        """Return the value for a sync call now.

        Raises:
            AuthenticationError: The callback failed, or returned no user.
            TokenExpiredError: The transport reads the token itself, and it has expired since it was passed.
            ConfigurationError: The callback is async.
        """
        if self._function is None:
            return self._fixed()
        given = apart(self._call)
        if inspect.isawaitable(given):
            if inspect.iscoroutine(given):
                given.close()
            raise ConfigurationError(
                "The function that says who is signed in is async, and this is a sync call.",
                hint="Use the a… methods.",
            )
        return self._checked(given)

    async def anow(self) -> T:
        """Return the value for an async call now. Raises as `now` does."""
        if self._function is None:
            return self._fixed()
        # A sync callback may block, for example while it refreshes the session.
        given = self._call() if inspect.iscoroutinefunction(self._function) else await in_thread(self._call)
        if inspect.isawaitable(given):
            try:
                given = await given
            except Exception as error:  # whatever the application's callback raises
                raise _failed(error) from error
        return self._checked(given)

    def _fixed(self) -> T:
        # A token may have expired since it was passed; claims may have been changed, so they are not read again.
        return cast("T", self._value) if self._token is None else self._checked(self._token)

    def _call(self) -> object:
        assert self._function is not None
        try:
            return self._function()
        except Exception as error:  # whatever the application's callback raises
            raise _failed(error) from error


def token(value: object) -> str:
    """Check an access token.

    Raises:
        AuthenticationError: It is not a string, is empty, or is not a valid header value.
    """
    if not isinstance(value, str) or not value or not value.isascii() or not value.isprintable() or " " in value:
        raise AuthenticationError(
            f"Nobody is signed in: the access token is not a token but {_kind(value)}.",
            hint=f"{_AWAIT if isawaitable(value) else ''}Pass the session's access_token, a JWT, or a function that "
            "gives it.",
        )
    if value.startswith(("sb_publishable_", "sb_secret_")):
        raise AuthenticationError(
            "Nobody is signed in: the access token is a key of the project.",
            hint="Pass a user's access_token; the key goes to from_url(url, key).",
        )
    if value.count(".") != 2:
        raise AuthenticationError(
            "Nobody is signed in: the access token is no JWT.",
            hint="Pass the session's access_token; a user's id goes into user_id.",
        )
    return value


def claims(value: object) -> tuple[str, str]:
    """Return claims as JSON, and their role.

    Raises:
        AuthenticationError: They are not claims, name no user, or name a role that Supabase does not have.
    """
    if not isinstance(value, Mapping):
        raise AuthenticationError(
            "Over a direct connection a user is named by verified claims, not by "
            + ("a token." if isinstance(value, str) and value.strip() else f"{_kind(value)}."),
            hint=f"{_AWAIT if isawaitable(value) else ''}Verify the token, then pass its claims: "
            '{"sub": "…", "role": "authenticated"}.',
        )
    role, user = value.get("role", "authenticated"), value.get("sub")
    if not isinstance(role, str) or role not in ROLES:
        raise AuthenticationError(
            "The claims name a role that is none of Supabase's.", hint=f"It is one of {', '.join(sorted(ROLES))}."
        )
    if role == "authenticated" and not (isinstance(user, str) and user.strip()):
        raise AuthenticationError(
            "Nobody is signed in: the claims name no user.", hint='Pass the claims of a token of Auth, with "sub".'
        )
    check_types(value)
    try:
        return json.dumps(dict(value), allow_nan=False), role
    except (TypeError, ValueError, RecursionError):
        raise AuthenticationError(
            "The claims are no JSON.", hint="Pass them as they were decoded from the token."
        ) from None


def check_types(claims: Mapping[str, Any]) -> None:
    """Refuse claims whose types violate RFC 7519, because they would compare wrongly, or not at all.

    Args:
        claims: The claims of a verified token.

    Raises:
        AuthenticationError: A claim has the wrong type.
    """
    for name, (types, what) in _TYPES.items():
        value = claims.get(name)
        if value is None:
            continue
        is_usable = isinstance(value, types) and not isinstance(value, bool)
        if not is_usable or (types is _NUMBERS and not abs(value) < _MUCH):  # also rejects NaN
            raise AuthenticationError(
                f"The claim {name} of the token is {type_name(value)}, and not {what}.",
                hint="Pass the claims as they were decoded from a token of Auth; correct what issues the token.",
            )


_NUMBERS: Final = (int, float)
_MUCH: Final = 1e15
"""More seconds than any date has."""

_TYPES: Final[dict[str, tuple[tuple[type, ...], str]]] = {
    **dict.fromkeys(("exp", "nbf", "iat"), (_NUMBERS, "a number of seconds")),
    **dict.fromkeys(("sub", "role", "iss"), ((str,), "a text")),
    "aud": ((str, list, tuple), "a text or a list of texts"),
}
"""The types of registered claims; the others belong to the application."""


def subject(token: str) -> str | None:
    """Return the user that an access token names, unverified; the server verifies it. `None` if it cannot be read.

    Args:
        token: The token, a JWT.
    """
    return _user(_payload(token))


def claimed(text: str) -> str | None:
    """Return the user that JSON claims name; `None` if they name none.

    Args:
        text: The claims.
    """
    return _user(documents.mapping(text))


def token_claims(value: str) -> dict[str, Any]:
    """Return a token's unverified claims, after checking that it is a signed-in user's and has not expired.

    Args:
        value: The token, a JWT.

    Raises:
        AuthenticationError: It cannot be read, has expired, or is not a signed-in user's.
    """
    found = _payload(token(value))
    if found is None:
        raise AuthenticationError(
            "Nobody is signed in: the access token cannot be read.", hint="Pass the session's access_token."
        )
    check_types(found)
    if found.get("role") == "service_role":
        raise AuthenticationError("The token is a server's.", hint="Pass a user's access_token.")
    if (expires := found.get("exp")) is not None and expires <= time.time():
        raise TokenExpiredError("The access token has expired.")
    return found


def _payload(token: str) -> dict[str, Any] | None:
    """Return the claims in a token, unverified; `None` if they cannot be read."""
    part = token.split(".")[1]
    try:
        return documents.mapping(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    except ValueError:
        return None


def _user(claims: dict[str, Any] | None) -> str | None:
    """Return the user that claims name, if any."""
    if claims is None or claims.get("role") == "service_role":  # it sees every user's rows
        return None
    user = claims.get("sub")
    return user if isinstance(user, str) and user else None


_AWAIT: Final = "Await it first, or pass the function itself. "


def _failed(error: Exception) -> AuthenticationError:
    return AuthenticationError(
        f"The function that says who is signed in failed ({type(error).__name__}).",
        hint="Nothing was sent. Look into that function; it gives the session's access token or claims.",
    )


def _kind(value: object) -> str:
    """Describe a value without its content."""
    if value is None:
        return "None"
    if isinstance(value, str):
        return "a text with spaces or signs that no token has" if value.strip() else "an empty text"
    return type_name(value)
