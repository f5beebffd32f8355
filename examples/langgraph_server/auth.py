"""Who may do what on LangGraph's server: users of Supabase's Auth, each with their own threads and store items."""

import asyncio
import os
from typing import Any

import jwt
from langgraph_sdk import Auth

auth = Auth()
issuer = f"{os.environ['SUPABASE_URL']}/auth/v1"
keys = jwt.PyJWKClient(f"{issuer}/.well-known/jwks.json")


def claims(token: str) -> dict[str, Any]:
    """What a good token says; it fetches the project's public keys when it needs them."""
    needed: Any = {"require": ["exp", "sub", "aud"]}
    key = keys.get_signing_key_from_jwt(token)
    return jwt.decode(token, key, ["ES256", "RS256"], audience="authenticated", issuer=issuer, options=needed)


@auth.authenticate
async def authenticate(authorization: str | None) -> Auth.types.MinimalUserDict:
    """Verify the token. The identity is the owner of every conversation of the run."""
    scheme, _, token = (authorization or "").partition(" ")
    try:
        said = await asyncio.to_thread(claims, token if scheme.lower() == "bearer" else "")
    except jwt.PyJWKClientConnectionError:  # nobody can tell: who signs in anew would gain nothing
        raise Auth.exceptions.HTTPException(status_code=503) from None
    except jwt.PyJWTError:
        raise Auth.exceptions.HTTPException(status_code=401) from None
    if said.get("role") != "authenticated":  # a server's own token is nobody's here
        raise Auth.exceptions.HTTPException(status_code=401)
    return {"identity": said["sub"]}


@auth.on
async def refused(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> bool:
    """What is not allowed below is not allowed."""
    return False


@auth.on.threads
async def own_threads(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> dict[str, str]:
    """Threads, and the runs in them, are their maker's."""
    owner = {"owner": ctx.user.identity}
    if value.get("metadata") is None:  # it may be left out, or null
        value["metadata"] = {}
    value["metadata"].update(owner)  # in place, for the server holds the same
    return owner


@auth.on.assistants.read
@auth.on.assistants.search
async def shared_assistants(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> bool:
    """The agent itself is everybody's to use."""
    return True


@auth.on.store
async def own_items(ctx: Auth.types.AuthContext, value: dict[str, Any]) -> None:
    """Store items are those of the user whose id their namespace begins with."""
    if tuple(value["namespace"] or ())[:1] != (ctx.user.identity,):
        raise Auth.exceptions.HTTPException(status_code=403)
