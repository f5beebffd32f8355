"""Who is asking: the token of each request, verified, and the context variable that holds its user."""

import asyncio
import os
import secrets
import time
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Annotated, Any

import jwt
from fastapi import Depends, HTTPException, Path
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer


@dataclass(frozen=True)
class Caller:
    """The user of a request: their token as it came, and what it says."""

    token: str
    claims: dict[str, Any]

    @property
    def user_id(self) -> str:
        """Whose conversations they reach."""
        return str(self.claims["sub"])


caller: ContextVar[Caller] = ContextVar("caller")
"""Each request runs in a context of its own, so that requests at the same time do not see each other's."""


class Project:
    """The users of a Supabase project: Supabase's Auth signs, and its public keys verify."""

    def __init__(self, url: str) -> None:
        self._issuer = f"{url}/auth/v1"
        self._keys = jwt.PyJWKClient(f"{self._issuer}/.well-known/jwks.json")

    def claims(self, token: str) -> dict[str, Any]:
        """What a good token says; it fetches the keys when it needs them."""
        key = self._keys.get_signing_key_from_jwt(token)
        return jwt.decode(
            token, key, ["ES256", "RS256"], audience="authenticated", issuer=self._issuer, options=_NEEDED
        )


Name = Annotated[str, Path(max_length=128, pattern=r"^[\w.@-]+$")]


class Local:
    """Users for a look without an account: this process signs whoever asks in. Not for a service that others reach."""

    def __init__(self) -> None:
        self._secret = secrets.token_hex(32)

    def sign_in(self, name: Name) -> str:
        """A token for an hour."""
        claims = {"sub": name, "role": "authenticated", "aud": "authenticated", "exp": int(time.time()) + 3600}
        return jwt.encode(claims, self._secret, "HS256")

    def claims(self, token: str) -> dict[str, Any]:
        """What a good token says."""
        return jwt.decode(token, self._secret, ["HS256"], audience="authenticated", options=_NEEDED)


_NEEDED: Any = {"require": ["exp", "sub", "aud"]}

users: Project | Local = Project(os.environ["SUPABASE_URL"]) if "SUPABASE_URL" in os.environ else Local()


async def signed_in(bearer: Annotated[HTTPAuthorizationCredentials, Depends(HTTPBearer())]) -> Caller:
    """The user of this request, from now on in `caller` too. It is async, or the variable would be set elsewhere."""
    try:
        claims = await asyncio.to_thread(users.claims, bearer.credentials)
    except jwt.PyJWKClientConnectionError:
        raise HTTPException(503, "The keys of the project cannot be fetched. Try again.") from None
    except jwt.PyJWTError:
        raise HTTPException(401, "Sign in again: the token is not good, or no more.") from None
    if claims.get("role") != "authenticated":  # a server's own token sees everybody: it is nobody's here
        raise HTTPException(401, "Sign in as a user.")
    found = Caller(bearer.credentials, claims)
    caller.set(found)
    return found
