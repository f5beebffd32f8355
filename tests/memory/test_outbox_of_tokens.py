"""What a token could not store waits for the same user's next token, and for nobody else's."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import jwt
import pytest
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from langchain_supabase_memory import SupabaseChatMessageHistory, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.adapters.transports.credentials import Credential
from langchain_supabase_memory.adapters.transports.credentials import token as checked_token
from langchain_supabase_memory.errors import AuthenticationError, OutboxError
from langchain_supabase_memory.memory import outbox
from langchain_supabase_memory.memory.outbox import Outbox
from langchain_supabase_memory.settings import NO_RETRY
from langchain_supabase_memory.values import ConversationKey
from tests.services.data_api import DataApi, token, verified

ANOTHER_SECRET = "another-secret-that-is-long-enough-for-it"


class Answering(BaseChatModel):
    """A model that does something while it answers."""

    text: str
    meanwhile: Callable[[], object] = lambda: None

    @property
    def _llm_type(self) -> str:
        return "answering"

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **_: Any) -> ChatResult:
        self.meanwhile()
        return ChatResult(generations=[ChatGeneration(message=AIMessage(self.text))])


@pytest.fixture
def project(data_api: DataApi) -> Iterator[SupabaseMemory]:
    """A server with the publishable key: only tokens can do anything."""
    with SupabaseMemory.from_url(data_api.url, token("anon"), rest_path="", retry=NO_RETRY) as memory:
        yield memory


def expire(memory: SupabaseMemory) -> None:
    """Let the token of a memory be refused from now on, as one that has expired."""
    transport: Any = memory._services.transport
    transport.inner._token = Credential(token(user_id=transport.user, expires_in=-100), checked_token)


async def turn(memory: SupabaseMemory, question: str, model: Answering, color: str) -> str:
    agent = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)])
    state: Any = {"messages": [HumanMessage(question)]}
    config: Any = {"configurable": {"thread_id": "t"}}
    result = await agent.ainvoke(state, config) if color == "async" else agent.invoke(state, config)
    return str(result["messages"][-1].text)


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_an_answer_after_the_end_of_its_token_is_stored_by_the_users_next_token(
    project: SupabaseMemory, user_id: str, color: str
) -> None:
    first = project.for_token(token(user_id=user_id))
    model = Answering(text="It is in the shed.", meanwhile=lambda: expire(first))
    assert await turn(first, "Where is my bike?", model, color) == "It is in the shed."
    del model
    assert project.health().pending == 1

    stranger = project.for_token(token(user_id=f"not {user_id}"))
    assert stranger.conversation("t").read() == []
    assert stranger.health().pending == 0
    stranger.flush()
    forged = jwt.encode({**verified(token(user_id=user_id))}, ANOTHER_SECRET, "HS256")
    attacker = project.for_token(forged)
    with pytest.raises(AuthenticationError):
        attacker.conversation("t").append([HumanMessage("I am somebody else.")])
    assert attacker.health().pending == 0
    assert project.health().pending == 1

    second = project.for_token(token(user_id=user_id))
    assert await turn(second, "And the key?", Answering(text="In the drawer."), color) == "In the drawer."
    assert [each.message.text for each in second.conversation("t").read()] == [
        "Where is my bike?", "It is in the shed.", "And the key?", "In the drawer.",
    ]  # fmt: skip
    assert project.health().pending == 0


def test_what_waits_for_a_user_is_in_the_context_of_their_next_token(project: SupabaseMemory, user_id: str) -> None:
    first = project.for_token(token(user_id=user_id))
    history = first.conversation("t")
    history.append([HumanMessage("Where is my bike?")])
    first._services.outbox.keep(first._services.key("t"), [AIMessage("It is in the shed.", id="a")])
    pack = project.for_token(token(user_id=user_id)).conversation("t").context()
    assert [each.text for each in pack.messages][-2:] == ["Where is my bike?", "It is in the shed."]


@pytest.fixture
def server(conn_string: str) -> Iterator[SupabaseMemory]:
    """A server over a direct connection, which verifies tokens itself."""
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        yield memory


def kept(server: SupabaseMemory, user_id: str, thread_id: str = "t", text: str = "Hello.") -> None:
    """Let a message wait for a user, as where the database is away from the beginning."""
    services = server.for_token(verified(token(user_id=user_id)))._services
    services.outbox.keep(services.key(thread_id), [HumanMessage(text, id=f"{thread_id} {text}")])


def test_verified_claims_need_no_answer_of_the_database(server: SupabaseMemory, user_id: str) -> None:
    kept(server, user_id)
    assert server.flush() == 0, "a server's own part"
    assert server.health().pending == 1
    memory = server.for_token(verified(token(user_id=user_id)))
    assert memory.health().pending == 1
    assert memory.flush() == 0
    assert [each.message.text for each in memory.conversation("t").read()] == ["Hello."]


def test_who_names_the_user_of_the_token_finds_the_same_messages(server: SupabaseMemory, user_id: str) -> None:
    kept(server, user_id)
    memory = server.for_token(verified(token(user_id=user_id)))
    SupabaseChatMessageHistory("t", memory.for_user(user_id)).add_messages([HumanMessage("Again.")])
    assert [each.message.text for each in memory.conversation("t").read()] == ["Hello.", "Again."]


def test_what_a_server_forgets_does_not_come_back_with_a_token(server: SupabaseMemory, user_id: str) -> None:
    claims = verified(token(user_id=user_id))
    for thread_id in ("one", "two", "three"):
        server.for_token(claims).conversation(thread_id).append([HumanMessage("Stored.", id=f"{thread_id} stored")])
        kept(server, user_id, thread_id)
    other = f"not {user_id}"
    kept(server, other)
    of_user = server.for_user(user_id)
    of_user.conversation("one").forget()
    of_user.conversation("two").forget_message("two Hello.")
    assert len(server.for_token(claims)._services.outbox) == 1
    of_user.forget_user()
    assert len(server.for_token(claims)._services.outbox) == 0
    assert len(server.for_token(verified(token(user_id=other)))._services.outbox) == 1


def test_the_limit_is_for_all_users_and_nobody_takes_a_place_for_good(
    server: SupabaseMemory, user_id: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    server._services.outbox.limit = 2
    for number in range(2):
        kept(server, f"{user_id} {number}")
    with pytest.raises(OutboxError):
        kept(server, user_id)
    monkeypatch.setattr(outbox, "_LONGEST_FOR_USER", timedelta(0))
    with caplog.at_level(logging.WARNING):
        kept(server, user_id)
    assert "2 waiting messages dropped" in caplog.text
    assert "Hello." not in caplog.text
    assert server.health().pending == 1


def test_a_verified_user_needs_no_name_where_a_callback_signs_others_in() -> None:
    every = Outbox(2, needs_owner=True)
    key = ConversationKey("t", None, "default")
    with pytest.raises(OutboxError, match="nobody is named"):
        every.keep(key, [HumanMessage("Hello.", id="a")])
    every.of_user("maya").keep(key, [HumanMessage("Hello.", id="a")])
    assert (len(every), len(every.of_user("maya")), len(every.of_user("ben")), every.total) == (0, 1, 0, 1)
