"""Models and embedders by name: the same everywhere, created where they are named, without a network."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import (
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseStore,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.adapters import model_loading
from langchain_supabase_memory.adapters.summarizer import SummaryModel
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError
from langchain_supabase_memory.models import EmbeddingModel, SupabaseSummarizer
from tests.memory_keywords import memory_keywords
from tests.services.openai_api import Answer, OpenAiApi

CONN = "postgresql://postgres:x@127.0.0.1:1/none"
MODEL = "openai:gpt-5.5"
EMBEDDER = "openai:text-embedding-3-small"


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")


@pytest.fixture
def no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any) -> None:
        raise AssertionError("the network was asked")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)


@pytest.mark.usefixtures("key", "offline")
def test_they_are_taken_wherever_an_object_is() -> None:
    memory = SupabaseMemory.from_conn_string(CONN, user_id="u", model=MODEL, embeddings=EMBEDDER)
    assert memory._services.model is not None
    assert memory._services.model.name == "gpt-5.5"
    assert memory._services.embedder_name == "text-embedding-3-small"
    assert memory.for_token({"sub": "u"})._services.model is memory._services.model

    bare = SupabaseMemory.from_conn_string(CONN, user_id="u")
    middleware = SupabaseMemoryMiddleware(bare, model=MODEL)
    assert middleware._guard.model is not None
    assert middleware._guard.model.name == "gpt-5.5"
    node = SupabaseSummarizationNode(bare, model=MODEL)
    assert node._guard.model is not None
    assert node._guard.model.name == "gpt-5.5"
    assert SupabaseSummarizer(bare, model=MODEL)._model.name == "gpt-5.5"
    assert EmbeddingModel(EMBEDDER, name="mine", batch=8).name == "mine"
    store = SupabaseStore(bare, index={"embed": EMBEDDER, "fields": ["text"]})
    assert store._model is not None
    # By the same name as a memory's, so that the one finds what the other embedded.
    assert store._model.name == memory._services.embedder_name


@pytest.mark.usefixtures("no_keys", "offline")
@pytest.mark.parametrize(
    ("make", "variable"),
    [
        (lambda: SupabaseMemory.from_conn_string(CONN, model=MODEL), "OPENAI_API_KEY"),
        (lambda: SupabaseMemory.from_conn_string(CONN, model="gpt-5.5"), "OPENAI_API_KEY"),
        (lambda: SupabaseMemory.from_conn_string(CONN, embeddings=EMBEDDER), "OPENAI_API_KEY"),
        # Its package would miss the key at the first call alone.
        (lambda: SupabaseMemory.from_conn_string(CONN, model="anthropic:claude-sonnet-4-5"), "ANTHROPIC_API_KEY"),
    ],
)
def test_a_key_that_is_missing_is_named_at_once(make: Callable[[], Any], variable: str) -> None:
    with pytest.raises(ConfigurationError, match=f"Set {variable}") as caught:
        make()
    assert caught.value.__cause__ is None


@pytest.mark.usefixtures("key", "offline")
def test_a_package_that_is_missing_is_named_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingDependencyError, match="pip install langchain-cohere"):
        SupabaseMemory.from_conn_string(CONN, embeddings="cohere:embed-v4.0")
    with pytest.raises(MissingDependencyError, match="pip install langchain-groq"):
        SupabaseMemory.from_conn_string(CONN, model="groq:llama-4")
    for module in ("langchain", "langchain.chat_models", "langchain.embeddings"):
        monkeypatch.setitem(sys.modules, module, None)
    for settings in ({"model": MODEL}, {"embeddings": EMBEDDER}):
        with pytest.raises(MissingDependencyError, match=r"langchain-supabase-memory\[agents\]"):
            SupabaseMemory.from_conn_string(CONN, **memory_keywords(settings))


@pytest.mark.usefixtures("key")
@pytest.mark.parametrize("name", ["sk-canary-key", "nonsense:x", "openai:", "", " ", "bogus"])
def test_what_is_no_name_is_met_by_an_example_and_never_shown(name: str) -> None:
    for made, example in ((SummaryModel, MODEL), (EmbeddingModel, EMBEDDER)):
        with pytest.raises(ConfigurationError, match=example) as caught:
            made(name)
        assert "canary" not in str(caught.value)


def test_langchain_is_not_imported_for_objects() -> None:
    program = """
import sys
from langchain_core.language_models import FakeListChatModel
from langchain_supabase_memory import SupabaseMemory
memory = SupabaseMemory.from_conn_string("postgresql://u:p@127.0.0.1:1/x", model=FakeListChatModel(responses=["x"]))
print([name for name in ("langchain", "openai", "langchain_openai") if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture
def api(monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAiApi]:
    served = OpenAiApi(lambda _: Answer("Maya fires at cone 6."))
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    monkeypatch.setenv("OPENAI_BASE_URL", f"{served.url}")
    yield served
    served.stop()


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_call_may_name_one_and_the_event_loop_goes_on(
    conn_string: str, user_id: str, api: OpenAiApi, color: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[bool] = []
    make = model_loading.load_chat_model

    def chat_model(name: str) -> Any:
        threads.append(threading.current_thread() is threading.main_thread())
        return make(name)

    monkeypatch.setattr("langchain_supabase_memory.adapters.summarizer.load_chat_model", chat_model)
    policy = SummaryPolicy(messages=2, keep_messages=1, min_quality=None)
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage(f"My kiln fires at cone 6, as I said {n} times") for n in range(6)])
        if color == "sync":
            done = conversation.summaries.make(policy=policy, model=MODEL)
        else:
            done = await conversation.summaries.amake(policy=policy, model=MODEL)
            conversation.append([HumanMessage(f"And again {n}") for n in range(6)])
            assert await conversation.acontext("?", policy=policy, model=MODEL)
        assert done.failed is None
        assert conversation.summaries.list()[0].content == "Maya fires at cone 6."
    assert api.requests
    assert all(is_main == (color == "sync") for is_main in threads)
    assert threads
