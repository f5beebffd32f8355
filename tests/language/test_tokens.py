"""The token estimate: local, never raising, and accurate where approximations usually fail."""

from __future__ import annotations

import hashlib
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_supabase_memory.language import tokens
from langchain_supabase_memory.language.messages import content
from tests.each_case import each_case
from tests.token_kinds import TEXTS


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[None]:
    def refused(*_: Any, **__: Any) -> Any:
        raise AssertionError("a token count asked the network")

    monkeypatch.setattr(socket, "create_connection", refused)
    monkeypatch.setattr(socket, "getaddrinfo", refused)
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(tmp_path))
    tokens.best_counter.cache_clear()
    yield
    tokens.best_counter.cache_clear()


def test_without_a_vocabulary_on_disk_nothing_is_asked_for() -> None:
    assert tokens.best_counter() is tokens.count_tokens


def test_a_broken_vocabulary_costs_nothing(tmp_path: Path) -> None:
    name = hashlib.sha1(tokens._VOCABULARY.encode()).hexdigest()
    (tmp_path / name).write_bytes(b"no vocabulary")
    count = tokens.best_counter()
    assert count("hello there") > 0


@pytest.mark.parametrize(
    ("message", "least"),
    [
        (HumanMessage("記憶は会話の中で最も大切なものです。" * 10), 130),
        (AIMessage([{"type": "text", "text": "ok"}], tool_calls=[{"name": "f", "args": {"x": "word " * 800}, "id": "c"}]), 800),
        (HumanMessage([{"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 400_000}}]), 85),
        (HumanMessage([{"type": "file", "base64": "A" * 400_000, "mime_type": "application/pdf"}]), 85),
        (AIMessage([{"type": "reasoning", "summary": [{"type": "summary_text", "text": "word " * 400}]}]), 400),
        (HumanMessage("<|endoftext|> \ud800 \x00"), 5),
    ],
    ids=["japanese", "tool arguments", "image", "file", "reasoning", "specials"],
)  # fmt: skip
def test_what_others_miss_is_counted(message: BaseMessage, least: int) -> None:
    assert least <= content.tokens(message) <= 3 * least + 1500


def o200k() -> Any:
    import bpe_openai  # it reads its vocabularies where it is imported, which takes half a second

    return bpe_openai.get_encoding("o200k_base")


@each_case("kind", TEXTS)
def test_the_estimate_is_never_lower_by_more_than_a_tenth(kind: str) -> None:
    """Beside o200k of `bpe-openai`, whose wheel holds the vocabulary: of each text, and of all texts of its kind."""
    encoding = o200k()
    for text in (*TEXTS[kind], "\n".join(TEXTS[kind])):
        assert tokens.count_tokens(text) >= 0.9 * len(encoding.encode_ordinary(text)), text


def test_the_estimate_of_prose_and_code_is_not_far_too_high() -> None:
    encoding = o200k()
    for kind, most in (("english", 1.3), ("python", 1.35), ("json", 1.3), ("chinese", 1.3), ("base64", 1.1)):
        text = "\n".join(TEXTS[kind])
        assert tokens.count_tokens(text) <= most * len(encoding.encode_ordinary(text)), kind
    for kind, texts in TEXTS.items():
        assert sum(map(tokens.count_tokens, texts)) <= 2 * len(encoding.encode_ordinary("\n".join(texts))), kind
