"""The memory of a space, for a request of one of its members: whether they are one is asked in each call."""

from __future__ import annotations

from contextlib import asynccontextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    MigrationConflictError,
    NotFoundError,
)
from langchain_supabase_memory.mcp.request_memory import RequestMemory, as_request, current_request
from langchain_supabase_memory.values import SPACE_ROLES

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from langchain_supabase_memory.values import SpaceRole

_LIST: Final = "list_spaces shows the spaces that the person is in."


def no_space() -> NotFoundError:
    """Return the refusal of a space: the same whether it does not exist, or the person is not in it."""
    return NotFoundError("There is no such space, or the person is not in it.", hint=_LIST)


def spaces_off() -> ConfigurationError:
    """Return the refusal where the database has no spaces."""
    return ConfigurationError(
        "Spaces are switched off in this database.",
        hint="Go on without them. Who runs this server can run `supabase-memory migrate --spaces`.",
    )


@asynccontextmanager
async def within_space(space_id: str | None, *, role: SpaceRole = "reader") -> AsyncIterator[None]:
    """Make a space's memory the one of the current request within the block.

    A server that names its user is not checked by row level security, so the role is asked for here, whoever asks.

    Args:
        space_id: The space; `None` means the person's own memory.
        role: The role that is needed at least.

    Raises:
        NotFoundError: There is no such space, or the person is not in it.
        InvalidInputError: The role does not suffice, or the server was started without spaces.
        ConfigurationError: Spaces are switched off in the database.
    """
    if space_id is None:
        yield
        return
    served = current_request()
    if not served.options.spaces:
        raise InvalidInputError(
            "This server serves no spaces.", hint="Leave space_id out. The option --spaces of the server adds them."
        )
    try:
        space = served.memory.space(space_id)
        own_role = (await space.ainfo()).role
    except (NotFoundError, InvalidInputError):
        raise no_space() from None
    except MigrationConflictError:
        raise spaces_off() from None
    if own_role is None:
        raise no_space()
    if SPACE_ROLES.index(own_role) < SPACE_ROLES.index(role):
        raise InvalidInputError(
            "In this space the person may only read.", hint="Tell the person: a manager of the space can change that."
        )
    with as_request(RequestMemory(space.memory, replace(served.options, conversation_id=None))):
        yield
