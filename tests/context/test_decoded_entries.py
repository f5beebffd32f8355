"""Kept decoded messages: the same as decoding anew, whatever changes, and nobody's change reaches another prompt."""

from __future__ import annotations

import json
import random
import subprocess
import sys
import threading
import tracemalloc
from datetime import UTC, datetime
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import ContextBudget, SupabaseMemory
from langchain_supabase_memory.context import decoded_entries
from langchain_supabase_memory.context.decoded_entries import DECODED, DecodedEntries
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.language.messages.blocks import PromptEntry


def payload(message: BaseMessage) -> Any:
    return codec.to_row(message)["payload"]


def told(number: int, text: str) -> BaseMessage:
    """A message as providers answer it, with nested metadata."""
    if number % 2 == 0:
        return HumanMessage(text, id=f"m{number}")
    return AIMessage(
        text,
        id=f"m{number}",
        response_metadata={"usage": {"prompt": number, "details": [1, 2]}},
        usage_metadata={"input_tokens": number, "output_tokens": 2, "total_tokens": number + 2},
    )


def seen(entry: PromptEntry) -> tuple[Any, ...]:
    return entry.message, entry.rendered, entry.model_input, entry.counts


@pytest.mark.pure
def test_what_is_kept_is_what_decoding_anew_gives() -> None:
    draw = random.Random(5)
    kept = DecodedEntries(most_bytes=20_000)  # some are dropped
    for _ in range(300):
        messages = [
            told(number, draw.choice(["a", "b " * 40, "ü\U0001f600", " "])) for number in range(draw.randint(0, 9))
        ]
        messages += [
            ToolMessage("result", tool_call_id="c", id="t"),
            AIMessage("", tool_calls=[{"name": "find", "args": {}, "id": "c"}], id="m1"),
            HumanMessage([{"type": "text", "text": "listed"}], id="m2"),
            HumanMessage("no id"),
        ]
        draw.shuffle(messages)
        payloads = [payload(message) for message in messages]
        expected = [seen(PromptEntry(message)) for message in codec.from_payloads(payloads)]
        assert [seen(entry) for entry in kept.decode(payloads)] == expected
        assert kept.size <= 20_000


@pytest.mark.pure
def test_who_changes_a_message_changes_their_own() -> None:
    kept = DecodedEntries()
    payloads = [payload(told(1, "The kiln is hot."))]
    for _ in range(3):
        (entry,) = kept.decode(payloads)
        message: Any = entry.message
        assert message == told(1, "The kiln is hot.")
        message.content = "Changed."
        message.additional_kwargs["new"] = True
        message.tool_calls.append({"name": "x", "args": {}, "id": "1"})
        message.response_metadata["usage"]["details"].append(3)
        message.usage_metadata["input_tokens"] = 99
        entry.sequences = (7,)


def odd_message(draw: random.Random) -> BaseMessage:
    """A message with values of any kind in any of its fields, as providers, middleware and applications leave them."""

    def value(depth: int = 0) -> Any:
        scalars: list[Any] = [True, 1, 1.0, 0, False, None, "", "a\0b", "\ud800", "\U0001f600", b"x", 2**70, 0.5]
        match draw.randint(0, 12 if depth < 3 else 5):
            case 6 | 7:
                return {draw.choice(["a", "b", "$python", 1]): value(depth + 1) for _ in range(2)}
            case 8 | 9:
                return [value(depth + 1) for _ in range(2)]
            case 10:
                return (value(depth + 1), [1])
            case 11:
                return draw.choice([{1, 2}, bytearray(b"y"), datetime(2026, 1, 2, tzinfo=UTC)])
        return draw.choice(scalars)

    text = draw.choice(["The kiln is hot.", "a\0b", "\ud83d", "\U0001f600", " ", ""])
    body: Any = draw.choice([text, text, text, [{"type": "text", "text": text}], [{"type": "odd", "deep": value()}]])
    fields: dict[str, Any] = {"id": f"m{draw.randint(0, 1)}", "response_metadata": {"x": value()}}
    if draw.random() < 0.5:
        fields |= {"additional_kwargs": {"y": value()}, "name": draw.choice([None, "ana"])}
    if draw.random() < 0.5:
        fields["of_a_provider"] = value()
    match draw.randint(0, 3):
        case 0:
            return HumanMessage(body, **fields)
        case 1:
            return ToolMessage(body, tool_call_id="c", artifact=value(), **fields)
        case 2:
            return AIMessage(body, tool_calls=[{"name": "find", "args": {"a": value()}, "id": "c"}], **fields)
    return AIMessage(body, usage_metadata={"input_tokens": 1, "output_tokens": 2, "total_tokens": 3}, **fields)


def change(value: Any) -> None:
    """Change all that can be changed in a value, in place."""
    if isinstance(value, BaseMessage):
        for each in [value.__dict__, value.__pydantic_extra__ or {}]:
            change(each)
            each.pop("new", None)
    elif isinstance(value, dict):
        for each in value.values():
            change(each)
        value["new"] = True
    elif isinstance(value, (list, tuple)):
        for each in value:
            change(each)
        if isinstance(value, list):
            value.append("new")
    elif isinstance(value, set):
        value.add("new")
    elif isinstance(value, bytearray):
        value.extend(b"new")


@pytest.mark.pure
def test_whatever_a_message_has_is_what_decoding_anew_gives_after_any_change() -> None:
    draw = random.Random(11)
    kept = DecodedEntries()
    for _ in range(600):
        stored = json.dumps(payload(odd_message(draw)))
        for _ in range(3):
            (entry,) = kept.decode([json.loads(stored)])
            anew = PromptEntry(codec.from_payload(json.loads(stored)))
            assert repr(entry.message) == repr(anew.message)  # `True`, `1` and `1.0` are equal
            assert seen(entry) == seen(anew)
            change(entry.message)
    assert kept.size > 0


@pytest.mark.pure
@pytest.mark.parametrize("extent", [0, 200])
def test_what_is_kept_beside_the_text_counts_too(extent: int) -> None:
    """As log probabilities, which are far longer than the text."""
    logprobs = [{"token": "kiln", "logprob": -1.5, "top_logprobs": []} for _ in range(extent)]
    stored = [
        json.dumps(payload(AIMessage(f"Yes {number}.", id=f"m{number}", response_metadata={"logprobs": logprobs})))
        for number in range(40)
    ]
    kept = DecodedEntries()
    kept.decode([json.loads(stored[0])])[0].counts  # noqa: B018 - what is imported for it is no memory of it
    before = kept.size
    tracemalloc.start()
    for each in stored[1:]:
        kept.decode([json.loads(each)])[0].counts  # noqa: B018
    taken = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert taken / 2 < kept.size - before < taken * 2


@pytest.mark.pure
def test_no_more_is_kept_than_allowed_and_not_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    kept = DecodedEntries(most_bytes=10_000)
    long = [payload(told(number, f"{number} " * 400)) for number in range(0, 40, 2)]
    kept.decode(long)
    assert 0 < kept.size <= 10_000
    kept.decode([payload(told(0, "x" * 200_000))])
    assert kept.size <= 10_000
    monkeypatch.setattr(decoded_entries, "_SECONDS", -1.0)
    kept.decode([])
    assert kept.size == 0


@pytest.mark.pure
def test_threads_read_at_once() -> None:
    kept = DecodedEntries(most_bytes=30_000)
    failed: list[BaseException] = []

    def read(seed: int) -> None:
        draw = random.Random(seed)
        try:
            for _ in range(200):
                numbers = [draw.randint(0, 20) for _ in range(5)]
                found = kept.decode([payload(told(number, f"text {number}")) for number in numbers])
                assert [entry.message.text for entry in found] == [f"text {number}" for number in numbers]
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=read, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failed


_FORKED = """
import os
from langchain_core.messages import HumanMessage
from langchain_supabase_memory.context.decoded_entries import DECODED
from langchain_supabase_memory.language.messages import codec
payload = codec.to_row(HumanMessage("The kiln is hot.", id="m"))["payload"]
DECODED.decode([payload])
assert DECODED.size > 0
DECODED._lock.acquire()  # as another thread of the parent may hold it
child = os.fork()
if child == 0:
    was_empty = DECODED.size == 0
    os._exit(0 if was_empty and DECODED.decode([payload])[0].message.text == "The kiln is hot." else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert DECODED.size > 0
"""


def test_a_child_process_begins_with_nothing_and_waits_for_no_lock() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKED], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def test_a_pack_is_what_it_is_without_anything_kept(memory: SupabaseMemory) -> None:
    """Edits, forgetting, opt-outs, other users and forks in between."""
    draw = random.Random(8)
    others = [memory, SupabaseMemory(memory._services.transport, user_id=f"{memory.user_id}-other")]
    numbers = iter(range(10_000))
    budget = ContextBudget(characters=6_000)

    def prompt(owner: SupabaseMemory) -> list[Any]:
        pack = owner.conversation("t").context("What now?", budget=budget)
        question = pack.prompt[-1]
        return [
            *((each.type, each.id, each.content) for each in pack.prompt[:-1]),
            question.text,
            pack.report().characters,
        ]

    for _ in range(60):
        owner = draw.choice(others)
        talk = owner.conversation("t")
        stored = [row for row in talk.read() if row.message_id is not None]
        match draw.choice(["say", "say", "edit", "forget", "read"]):
            case "edit" if stored:
                row = draw.choice([row for row in stored if row.role == "user"] or stored)
                talk.append([HumanMessage(f"Edited {next(numbers)}.", id=row.message_id)])
            case "forget" if stored:
                talk.forget_message(str(draw.choice(stored).message_id))
            case _:
                number = next(numbers)
                talk.append([HumanMessage(f"Said {number}", id=f"u{number}"), AIMessage("Yes.", id=f"a{number}")])
        warm = prompt(owner)
        DECODED.clear()
        assert prompt(owner) == warm
    assert memory.conversation("t").read() != others[1].conversation("t").read()
