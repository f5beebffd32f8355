"""Verifies access tokens: signed by the project's own keys, for a signed-in user, and not expired."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import httpx
import jwt
from mcp.server.auth.provider import AccessToken

from langchain_supabase_memory.adapters.transports.credentials import check_types
from langchain_supabase_memory.adapters.transports.credentials import token as checked_token
from langchain_supabase_memory.deadline import in_thread
from langchain_supabase_memory.errors import AuthenticationError, ConfigurationError, UnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable

_logger = logging.getLogger(__name__)

ALGORITHMS: Final = ("ES256", "RS256", "EdDSA")
"""The accepted signature algorithms: no shared secrets, because whoever verifies such a token could also create one."""

AUDIENCE: Final = "authenticated"
"""The audience of Supabase Auth's tokens for signed-in users; Supabase does not support RFC 8707."""

_KEPT_SECONDS: Final = 600.0
_STALE_SECONDS: Final = 3600.0
_PAUSE_SECONDS: Final = 10.0
_LEEWAY_SECONDS: Final = 30.0
_TIMEOUT_SECONDS: Final = 10.0
_MAX_BYTES: Final = 1_000_000


@dataclass
class SigningKeys:
    """The public keys of an issuer, fetched when needed and cached for ten minutes.

    A token with an unknown key triggers a new fetch, so that a rotation works at once. Fetches are at least
    `pause_seconds` apart, so that the issuer cannot be flooded, and a hanging issuer delays few requests. While the
    issuer is unavailable the keys are used for up to an hour.

    Attributes:
        url: The url of the keys.
        pause_seconds: The minimum time between fetches, in seconds, including failed ones.
        timeout_seconds: The maximum time of a whole fetch, in seconds, however the answer trickles in.
        clock: Monotonic seconds.
    """

    url: str
    pause_seconds: float = _PAUSE_SECONDS
    timeout_seconds: float = _TIMEOUT_SECONDS
    clock: Callable[[], float] = time.monotonic
    _keys: dict[str, jwt.PyJWK] = field(default_factory=dict, repr=False)
    _loaded_at: float | None = None
    _tried_at: float | None = None
    _is_away: bool = False
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock, repr=False)

    async def key(self, key_id: str) -> jwt.PyJWK | None:
        """Return a key by its id; `None` if the issuer has no such key.

        Args:
            key_id: The id, from a token's header.

        Raises:
            UnavailableError: The issuer cannot be reached, and the key is unknown or was fetched too long ago.
        """
        is_usable = key_id in self._keys and self._age() <= _STALE_SECONDS
        # A request whose key is cached does not wait for another request's fetch.
        if self._is_due(key_id) and not (is_usable and self._lock.locked()):
            async with self._lock:
                if self._is_due(key_id):  # another request may have fetched them meanwhile
                    await self._refresh()
        found = self._keys.get(key_id)
        if self._age() > _STALE_SECONDS or (found is None and self._is_away):
            raise UnavailableError("The keys of the project could not be fetched.")
        return found

    async def load(self) -> None:
        """Fetch the keys now, when a server starts.

        Raises:
            UnavailableError: The issuer cannot be reached.
            ConfigurationError: It has no keys, or none that can verify a token.
        """
        known = await _fetch(self.url, self.timeout_seconds)
        if not known:
            raise ConfigurationError(
                "The project signs its users' tokens with a secret (HS256), so no server can verify them safely.",
                hint="Rotate to an asymmetric key (ES256) on the dashboard's page of JWT keys, then start again.",
            )
        self._set(known)

    def _is_due(self, key_id: str) -> bool:
        """Return whether to fetch the keys: they are old or lack this one, and the last try is long enough ago."""
        is_wanted = key_id not in self._keys or self._age() > _KEPT_SECONDS
        return is_wanted and self._since_try() >= self.pause_seconds

    async def _refresh(self) -> None:
        try:
            self._set(await _fetch(self.url, self.timeout_seconds))
        except (UnavailableError, ConfigurationError) as error:
            level = logging.DEBUG if self._is_away else logging.WARNING
            self._is_away = True
            _logger.log(level, "The keys of the project could not be fetched: %s", error.reason)
        finally:
            self._tried_at = self.clock()  # after the try, which may itself take long

    def _set(self, keys: dict[str, jwt.PyJWK]) -> None:
        if self._is_away:
            _logger.info("The keys of the project can be fetched again.")
        self._keys, self._is_away = keys, False
        self._loaded_at = self._tried_at = self.clock()

    def _age(self) -> float:
        return float("inf") if self._loaded_at is None else self.clock() - self._loaded_at

    def _since_try(self) -> float:
        return float("inf") if self._tried_at is None else self.clock() - self._tried_at


@dataclass(frozen=True)
class TokenVerifier:
    """Verifies access tokens for the SDK.

    Attributes:
        issuer: The issuer of the tokens, as in their `iss`.
        keys: Its public keys.
    """

    issuer: str
    keys: SigningKeys

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return a token's contents; `None` if it is not valid.

        Args:
            token: The token after `Bearer`.

        Raises:
            UnavailableError: The issuer is unavailable, so the token cannot be verified.
        """
        try:
            claims = await self._claims(checked_token(token))
        except (jwt.PyJWTError, AuthenticationError, ValueError, TypeError, ArithmeticError) as error:
            _logger.info("An access token was refused: %s", type(error).__name__)
            return None
        client = claims.get("client_id")
        return AccessToken(
            token=token,
            client_id=client if isinstance(client, str) and client else AUDIENCE,
            scopes=[],
            expires_at=int(claims["exp"]),
            subject=claims["sub"],
            claims={"iss": claims["iss"]},
        )

    async def _claims(self, token: str) -> dict[str, Any]:
        header = jwt.get_unverified_header(token)
        key_id = header.get("kid")
        if header.get("alg") not in ALGORITHMS or not isinstance(key_id, str):
            raise jwt.InvalidAlgorithmError
        key = await self.keys.key(key_id)
        if key is None or key.algorithm_name != header["alg"]:
            raise jwt.InvalidKeyError
        claims: dict[str, Any] = jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=AUDIENCE,
            issuer=self.issuer,
            leeway=_LEEWAY_SECONDS,
            options={"require": ["exp", "sub", "aud", "iss"]},
        )
        check_types(claims)
        # A server's own token bypasses row level security, so it is refused here.
        if claims.get("role") != AUDIENCE or not claims["sub"].strip() or claims["exp"] <= time.time():
            raise jwt.InvalidTokenError
        return claims


async def _fetch(url: str, timeout_seconds: float) -> dict[str, jwt.PyJWK]:
    """Fetch the keys that can verify a token, by id.

    Raises:
        UnavailableError: The issuer cannot be reached, or has not answered in time.
        ConfigurationError: The response is not a set of keys.
    """
    body = bytearray()
    try:
        trusted = await in_thread(httpx.create_ssl_context)  # reads files
        async with (
            asyncio.timeout(timeout_seconds),  # that of httpx begins anew with each byte
            httpx.AsyncClient(timeout=timeout_seconds, verify=trusted) as client,
            client.stream("GET", url) as response,
        ):
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > _MAX_BYTES:
                    break
    except (httpx.HTTPError, TimeoutError) as error:
        raise UnavailableError(f"The project's keys could not be fetched ({type(error).__name__}).") from None
    if response.status_code >= 500:
        raise UnavailableError(f"The project's keys could not be fetched (HTTP {response.status_code}).")
    try:
        listed: Any = json.loads(body)["keys"] if len(body) <= _MAX_BYTES else None
        found = [each for each in listed if isinstance(each, dict)]
    except (ValueError, TypeError, KeyError, RecursionError):
        raise ConfigurationError(
            f"The issuer gives no keys (HTTP {response.status_code}).",
            hint="Check --url, and --issuer if it is given: the keys are below it, at .well-known/jwks.json.",
        ) from None
    return {key.key_id: key for key in map(_key, found) if key is not None and key.key_id}


def _key(document: dict[str, Any]) -> jwt.PyJWK | None:
    """Return a key that can verify a token; `None` if it is of another kind, or cannot be read."""
    if not isinstance(document.get("kid"), str) or document.get("use", "sig") != "sig":
        return None
    try:
        key = jwt.PyJWK(document)
    except (jwt.PyJWTError, NotImplementedError, TypeError, ValueError, ArithmeticError):
        return None  # one strange key does not take the others away
    return key if key.algorithm_name in ALGORITHMS else None
