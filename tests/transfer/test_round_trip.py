"""What is exported and imported elsewhere is equal: messages, metadata, times, opt-outs and what people set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from langchain_supabase_memory import (
    Conversation,
    SummaryPolicy,
    SupabaseMemory,
    export_conversations,
    import_conversations,
)
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.transfer.sources import jsonl
from tests.fuzzing import examples
from tests.language.test_messages import EVERY_KIND

BY: Final = "ana"
THEN: Final = datetime(2025, 3, 1, 12, tzinfo=UTC)
_numbers = count()


@pytest.fixture(scope="module")
def memory(conn_string: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, recall=None) as made:
        yield made


def fresh() -> str:
    return f"traveler-{next(_numbers)}"


def filled(conversation: Conversation) -> None:
    """A conversation with all that people can set of one."""
    times = [THEN + timedelta(minutes=n) for n in range(len(EVERY_KIND))]
    conversation.append(EVERY_KIND, metadata={"source": "web"}, created_at=times)
    conversation.append([HumanMessage("My budget is 40 euros.", id="b1"), AIMessage("Noted.", id="b2")])
    conversation.update(title="A kiln", metadata={"color": "blue"})
    conversation.add_board_item("fact", "The budget is 40 euros", by=BY)
    gone = conversation.add_board_item("fact", "The kiln is green", by=BY)
    conversation.delete_board_item(gone, by=BY)
    pinned = conversation.add_board_item("action", "Order a thermocouple", by=BY)
    conversation.edit_board_item(pinned, by="ben", state="done")
    conversation.pin_board_item(pinned, by=BY)
    conversation.edit_board_summary("It is about a kiln.", by=BY)
    conversation.opt_out("divorce", by=BY)


def told(memory: SupabaseMemory, user_id: str) -> list[Any]:
    """All that an export is to keep of a user, as another user's would be."""
    found: list[Any] = [[(o.topic, o.thread_id, o.agent_id, o.by, o.at) for o in memory.opt_outs(user_id=user_id)]]
    for info in sorted(
        memory.conversations(user_id=user_id, limit=1000), key=lambda each: (each.thread_id, each.agent_id)
    ):
        conversation = memory.conversation(info.thread_id, user_id=user_id, agent_id=info.agent_id)
        messages = [
            (m.message_id, m.message, m.role, m.text, m.characters, m.tokens, m.created_at, m.metadata, m.images)
            for m in conversation.read(columns=COLUMNS)
        ]
        board = conversation.board()
        items = [
            (i.kind, i.text, i.state, i.type, i.pinned, i.author, i.edited_by, i.edited_at, i.message_ids, i.quote)
            for i in board.items
        ]
        summaries = [
            (s.content, s.to_sequence, s.edited_by, s.edited_at) for s in conversation.summaries() if s.edited_by
        ]
        found.append(
            (
                info.thread_id, info.agent_id, info.title, info.metadata, info.created_at, info.opted_out_at is None,
                messages, sorted(items), board.edited_summary, board.edited_by, board.edited_at, summaries,
            )
        )  # fmt: skip
    return found


COLUMNS: Final = (
    "message_id", "role", "text", "characters", "tokens", "created_at", "metadata", "images", "payload",
)  # fmt: skip


def moved(memory: SupabaseMemory, source: str, target: str, folder: Path) -> Path:
    path = folder / f"{source}.jsonl"
    export_conversations(memory, path, user_id=source)
    import_conversations(memory, jsonl(path), user_id=target)
    return path


def test_all_of_a_user_is_equal_elsewhere_and_a_repeat_changes_nothing(memory: SupabaseMemory, tmp_path: Path) -> None:
    one, other = fresh(), fresh()
    memory.opt_out("health", by=BY, user_id=one)
    filled(memory.conversation("studio", user_id=one))
    filled(memory.conversation("studio", user_id=one, agent_id="second"))
    memory.conversation("silent", user_id=one).opt_out(by=BY)
    memory.conversation("silent", user_id=one).append([HumanMessage("Nothing of this", id="n1")])

    path = moved(memory, one, other, tmp_path)
    assert told(memory, other) == told(memory, one)
    again = import_conversations(memory, jsonl(path), user_id=other)
    assert (again.stored, again.restored, again.known) == (0, 0, again.messages)
    assert told(memory, other) == told(memory, one)


def test_what_a_person_deleted_from_a_board_does_not_come_back_elsewhere(
    memory: SupabaseMemory, tmp_path: Path
) -> None:
    one, other = fresh(), fresh()
    said = memory.conversation("studio", user_id=one)
    said.append([HumanMessage("I live in Lisbon. My budget is 40 euros.", id="m0"), AIMessage("Noted.", id="m1")])
    said.revise_board()
    lisbon = next(item for item in said.board().items if "Lisbon" in item.text)
    kept = {item.text for item in said.board().items if "Lisbon" not in item.text}
    for item in said.board().items:
        if "Lisbon" in item.text:
            said.delete_board_item(item, by=BY)
    moved(memory, one, other, tmp_path)
    there = memory.conversation("studio", user_id=other)
    there.revise_board()
    assert lisbon.text not in {item.text for item in there.board().items}
    assert kept <= {item.text for item in there.board().items}


def test_a_summary_that_a_person_wrote_stands_elsewhere(memory: SupabaseMemory, tmp_path: Path) -> None:
    one, other = fresh(), fresh()
    said = memory.conversation("studio", user_id=one)
    said.append([HumanMessage(f"Glaze number {n} is blue and costs {n} euros.", id=f"m{n}") for n in range(30)])
    policy = SummaryPolicy(keep_messages=2, input_characters=400, max_characters=2000)
    assert len(said.summarize(policy=policy).segments) > 1
    first = said.summaries()[0]
    said.edit_summary(first.number, "Thirty glazes.", by=BY)
    moved(memory, one, other, tmp_path)
    assert [s.content for s in memory.conversation("studio", user_id=other).summaries()] == ["Thirty glazes."]
    assert told(memory, other) == told(memory, one)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@st.composite
def messages(draw: Callable[[Any], Any]) -> list[tuple[BaseMessage, datetime]]:
    """A conversation of all kinds of messages, with times in no order."""
    made: list[tuple[BaseMessage, datetime]] = []
    for number in range(draw(st.integers(0, 8))):
        kind = draw(st.sampled_from([HumanMessage, AIMessage, SystemMessage, "call", "result"]))
        body = draw(texts | st.lists(st.fixed_dictionaries({"type": st.just("text"), "text": texts}), max_size=3))
        beside = draw(st.dictionaries(texts, json_values, max_size=2))
        message: BaseMessage
        if kind == "call":
            arguments = draw(st.dictionaries(texts, json_values, max_size=2))
            message = AIMessage(body, tool_calls=[{"name": "look_up", "args": arguments, "id": f"c{number}"}])
        elif kind == "result":
            message = ToolMessage(body, tool_call_id=f"c{number - 1}", artifact=draw(json_values))
        else:
            message = kind(body, additional_kwargs=beside)
        message.id = f"m{number}"
        made.append((message, draw(st.datetimes(datetime(1980, 1, 1), datetime(2026, 1, 1), timezones=st.just(UTC)))))
    return made


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # fmt: skip
@given(
    said=messages(),
    title=st.none() | texts,
    metadata=st.dictionaries(texts, json_values, max_size=3),
    facts=st.lists(texts, max_size=3),
    topics=st.lists(st.sampled_from(["divorce", "kiln", "健康"]), max_size=2),
    remembered=st.booleans(),
)
def test_any_conversation_is_equal_elsewhere(
    memory: SupabaseMemory,
    tmp_path: Path,
    said: list[tuple[BaseMessage, datetime]],
    title: str | None,
    metadata: dict[str, Any],
    facts: list[str],
    topics: list[str],
    remembered: bool,
) -> None:
    one, other = fresh(), fresh()
    conversation = memory.conversation("studio", user_id=one)
    for message, time in said:
        conversation.append([message], metadata=metadata or None, created_at=time)
    conversation.append([HumanMessage("The end", id="end")])
    for text in facts:
        try:
            item = conversation.add_board_item("fact", text, by=BY)
            if len(text) % 2:
                conversation.delete_board_item(item, by=BY)
            elif len(text) % 3:
                conversation.pin_board_item(item, by=BY)
        except InvalidInputError:
            continue  # it has no words
    try:
        conversation.update(title=title, metadata=metadata)
    except InvalidInputError:
        conversation.update(metadata={"a": 1})
    for topic in topics:
        conversation.opt_out(topic, by=BY)
    if not remembered:
        conversation.opt_out(by=BY)
    moved(memory, one, other, tmp_path)
    assert told(memory, other) == told(memory, one)
