"""A visitor of the inspector without a browser: raw pages and their contents."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from html.parser import HTMLParser
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlencode

import httpx
import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application
from langchain_supabase_memory.inspector.screen_list import Screen
from tests.memory_keywords import memory_keywords
from tests.services.data_api import DataApi, token

ADDRESS = "http://127.0.0.1:8765"
TOKEN = "a-token-of-the-tests"
ASKED: dict[str, dict[str, Any]] = {
    "message": {"number": 0}, "messages": {"first": 0, "last": 1}, "prompt": {"question": "kiln"}, "turn": {"answer": 1},
    "recall": {"q": "kiln"}, "search": {"q": "kiln"},
}  # fmt: skip
"""What the addresses of screens name beside a conversation. An item has an id that only its board knows."""


def asked_of(screen: Screen, thread: str = "t") -> dict[str, Any]:
    """What the address of a screen names, its conversation included."""
    return {**({"thread": thread} if screen.is_of_conversation else {}), **ASKED.get(screen.name, {})}


def address_of(screen: Screen, thread: str = "t") -> str:
    """The path of a screen, with what it names."""
    asked = asked_of(screen, thread)
    return f"{screen.path}?{urlencode(asked)}" if asked else screen.path


class Reader(HTMLParser):
    """Reads a page: its elements, its words, and the CSRF token of its forms."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self._silent = 0
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    @property
    def text(self) -> str:
        return " ".join("".join(self.words).split())

    def all(self, tag: str, **wanted: str) -> list[dict[str, str | None]]:
        """The attributes of the elements of a name that have these."""
        return [
            attributes
            for name, attributes in self.elements
            if name == tag and all(attributes.get(key.rstrip("_")) == value for key, value in wanted.items())
        ]

    @property
    def csrf_token(self) -> str:
        """The CSRF token of the forms."""
        return next(str(each["value"]) for each in self.all("input", name="csrf_token"))


class Person:
    """Somebody who has opened the printed address.

    Args:
        memory: What is looked at.
        settings: As for `application`.
    """

    def __init__(self, memory: Any, **settings: Any) -> None:
        self.app = application(memory, token=TOKEN, **settings)
        self.http = httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=ADDRESS)

    async def __aenter__(self) -> Self:
        entered = await self.http.get("/", params={"token": TOKEN})
        assert entered.status_code == 303
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.http.aclose()

    async def page(self, path: str, status: int = 200, *, part: bool = False, **asked: Any) -> Reader:
        """A page, or a part of one."""
        answer = await self.answer(path, part=part, **asked)
        assert answer.status_code == status, Reader(answer.text).text
        return Reader(answer.text)

    async def answer(self, path: str, *, part: bool = False, **asked: Any) -> httpx.Response:
        return await self.http.get(path, params=asked or None, headers={"hx-request": "true"} if part else {})

    async def post(self, path: str, form: dict[str, str], **asked: Any) -> httpx.Response:
        """Send a form as the page's own do, with the CSRF token unless the form has one."""
        token = {} if "csrf_token" in form else {"csrf_token": self.csrf_token}
        return await self.http.post(
            path,
            params=asked or None,
            content=urlencode({**token, **form}),
            headers={"origin": ADDRESS, "content-type": "application/x-www-form-urlencoded"},
        )

    @property
    def csrf_token(self) -> str:
        gate = self.app.state.inspector.sessions
        token: str = gate.form_token(str(self.http.cookies.get(gate.cookie)))
        return token


def memory_of(conn_string: str, user_id: str | None = None, **settings: Any) -> SupabaseMemory:
    """A memory with a server's rights."""
    return SupabaseMemory.from_conn_string(conn_string, user_id=user_id, **memory_keywords(settings))


@asynccontextmanager
async def by_door(request: pytest.FixtureRequest, server: SupabaseMemory, data_api: str) -> AsyncIterator[Any]:
    """What gives a user's memory: a server that names its user, or a signed-in user by one of both doors."""
    if request.param == "server":
        yield server.for_user
    elif request.param == "claims":
        yield lambda user: server.for_token({"sub": user, "role": "authenticated"})
    else:
        api: DataApi = request.getfixturevalue(data_api)
        async with SupabaseMemory.from_url(api.url, token("anon"), rest_path="") as anonymous:
            yield lambda user: anonymous.for_token(token("authenticated", user))
