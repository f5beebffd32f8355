"""The ASGI application: its routes and error handlers."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.routing import Route

from langchain_supabase_memory.checks import wrong_type
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.inspector import (
    edit_routes,
    error_pages,
    live_updates,
    profile_routes,
    space_routes,
    static_files,
    topic_routes,
)
from langchain_supabase_memory.inspector.auth import LOCAL, AuthMiddleware, SessionStore
from langchain_supabase_memory.inspector.request_context import InspectorState, admitted
from langchain_supabase_memory.inspector.screen_list import SCREENS
from langchain_supabase_memory.inspector.undo import UndoStore
from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.operations.arguments import check_actor

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Sequence

    from starlette.requests import Request


def application(
    memory: SupabaseMemory | Callable[[Request], SupabaseMemory],
    *,
    write: bool = False,
    actor: str = "inspector",
    hosts: Sequence[str] = LOCAL,
    token: str | None = None,
) -> Starlette:
    """Return the inspector as an ASGI application: serve it, or mount it in one of yours.

    Args:
        memory: The memory to inspect. With a server's rights and no user it shows every user's conversations; over
            `memory.for_token(...)` only that user's, under row level security. Or a function that takes a Starlette
            request and returns the memory for its user.
        write: Whether people may change something: pin, edit, delete, regenerate, opt out, retry.
        actor: The name recorded with a change; if `memory` acts as a user, that user is recorded instead.
        hosts: The accepted host names, without a port; by default those of this machine.
        token: The token that admits one browser, once, as `?token=...`: 16 characters or more. Without a token
            everybody who can reach the application is admitted, so the application that mounts it must authenticate
            them.

    Returns:
        The application. It stores nothing, and does not close the memory.

    Raises:
        ConfigurationError: `memory` is neither, `hosts` is not a list of names, or `token` is empty or short.
        InvalidInputError: `actor` is not a valid name.
    """
    if not isinstance(memory, SupabaseMemory) and not callable(memory):
        raise wrong_type("memory", "a SupabaseMemory, or a function from a request to one", memory, "Open one first.")
    if isinstance(hosts, str) or not all(isinstance(each, str) and each for each in hosts):
        raise wrong_type("hosts", "a list of names", hosts, 'Pass hosts=["inspector.example.com"].')
    sessions = SessionStore(token)
    notifier = live_updates.ChangeNotifier(memory._services.transport if isinstance(memory, SupabaseMemory) else None)

    @asynccontextmanager
    async def lifespan(_: Starlette) -> AsyncIterator[None]:
        yield
        notifier.stop()

    app = Starlette(
        routes=[
            *(Route(screen.path, admitted(screen.respond)) for screen in SCREENS),
            Route("/events", live_updates.events),
            *edit_routes.ROUTES,
            *profile_routes.ROUTES,
            *topic_routes.ROUTES,
            *space_routes.ROUTES,
            Route("/static/{name}", static_files.static_file),
        ],
        middleware=[Middleware(AuthMiddleware, sessions=sessions, hosts=hosts)],
        exception_handlers={
            SupabaseMemoryError: error_pages.on_memory_error,
            HTTPException: error_pages.on_http_error,
        },
        lifespan=lifespan,
    )
    app.state.inspector = InspectorState(
        memory,
        write=write,
        actor=check_actor(actor),
        screens=SCREENS,
        sessions=sessions,
        notifier=notifier,
        undos=UndoStore(),
    )
    return app
