"""Exported and imported data is equal: messages, metadata, times, opt-outs and user settings."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any, Final

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from langchain_supabase_memory import MemoryConfig, Retention, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.agents.nodes import SaveTurnNode
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.transfer import export_conversations, import_conversations
from langchain_supabase_memory.transfer.sources import jsonl
from langchain_supabase_memory.types import BoardItem, Chunk, Conversation
from tests.fuzzing import examples
from tests.language.test_messages import EVERY_KIND

BY: Final = "ana"
THEN: Final = datetime(2025, 3, 1, 12, tzinfo=UTC)
_numbers = count()


@pytest.fixture(scope="module")
def memory(conn_string: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, config=MemoryConfig(recall=None)) as made:
        yield made


def fresh() -> str:
    return f"traveler-{next(_numbers)}"


def filled(conversation: Conversation) -> None:
    """A conversation with all that people can set of one."""
    times = [THEN + timedelta(minutes=n) for n in range(len(EVERY_KIND))]
    conversation.append(EVERY_KIND, metadata={"source": "web"}, created_at=times)
    conversation.append([HumanMessage("My budget is 40 euros.", id="b1"), AIMessage("Noted.", id="b2")])
    conversation.update(title="A kiln", metadata={"color": "blue"})
    conversation.board.add("fact", "The budget is 40 euros", actor=BY)
    gone = conversation.board.add("fact", "The kiln is green", actor=BY)
    conversation.board.delete(gone, actor=BY)
    pinned = conversation.board.add("action", "Order a thermocouple", actor=BY)
    conversation.board.edit(pinned, actor="ben", state="done")
    conversation.board.pin(pinned, actor=BY)
    conversation.board.edit_summary("It is about a kiln.", actor=BY)
    conversation.opt_out("divorce", actor=BY)


def snapshot(memory: SupabaseMemory, user_id: str) -> list[Any]:
    """Return everything of a user that an export keeps, without the user's id."""
    found: list[Any] = [
        [(o.topic, o.thread_id, o.agent_id, o.actor, o.at) for o in memory.for_user(user_id).privacy.opt_outs()]
    ]
    for info in sorted(
        memory.for_user(user_id).conversations(limit=1000), key=lambda each: (each.thread_id, each.agent_id)
    ):
        conversation = memory.for_user(user_id).conversation(info.thread_id, agent_id=info.agent_id)
        messages = [
            (m.message_id, m.message, m.role, m.text, m.characters, m.tokens, m.created_at, m.metadata, m.images)
            for m in conversation.read(columns=COLUMNS)
        ]
        # A message that is said now is a little younger than the change that it is.
        changed = max([info.updated_at, *(each[6] for each in messages if each[6] is not None)])
        board = conversation.board.read()
        items = [
            (i.kind, i.text, i.state, i.type, i.pinned, i.author, i.edited_by, i.edited_at, i.message_ids, i.quote)
            for i in board.items
            if i.pinned or i.edited_by is not None  # the others are made anew
        ]
        # Who took a summary back is not kept.
        summary = board.edited_summary and (board.edited_summary, board.edited_by, board.edited_at)
        summaries = [
            (s.content, s.to_sequence, s.edited_by, s.edited_at) for s in conversation.summaries.list() if s.edited_by
        ]
        found.append(
            (
                info.thread_id, info.agent_id, info.title, info.metadata, info.created_at, changed,
                info.opted_out_at is None, messages, sorted(items, key=repr), summary, summaries,
            )
        )  # fmt: skip
    return found


COLUMNS: Final = (
    "message_id", "role", "text", "characters", "tokens", "created_at", "metadata", "images", "payload",
)  # fmt: skip


def moved(memory: SupabaseMemory, source: str, target: str, folder: Path) -> Path:
    path = folder / f"{source}.jsonl"
    export_conversations(memory.for_user(source), path)
    import_conversations(memory.for_user(target), jsonl(path))
    return path


def test_all_of_a_user_is_equal_elsewhere_and_a_repeat_changes_nothing(memory: SupabaseMemory, tmp_path: Path) -> None:
    one, other = fresh(), fresh()
    memory.for_user(one).privacy.opt_out("health", actor=BY)
    filled(memory.for_user(one).conversation("studio"))
    filled(memory.for_user(one).conversation("studio", agent_id="second"))
    rated = memory.for_user(one).conversation("studio")
    rated.index()
    memory.for_user(one).privacy.rate(rated.chunks.list()[0], actor=BY, useful=True)
    memory.for_user(one).conversation("silent").opt_out(actor=BY)
    memory.for_user(one).conversation("silent").append([HumanMessage("Nothing of this", id="n1")])

    path = moved(memory, one, other, tmp_path)
    assert snapshot(memory, other) == snapshot(memory, one)
    again = import_conversations(memory.for_user(other), jsonl(path))
    assert (again.stored, again.restored, again.known) == (0, 0, again.messages)
    assert snapshot(memory, other) == snapshot(memory, one)


def test_a_message_that_a_fast_clock_dated_is_equal_elsewhere(memory: SupabaseMemory, tmp_path: Path) -> None:
    one, other = fresh(), fresh()
    ahead = datetime(2140, 1, 1, tzinfo=UTC)
    memory.for_user(one).conversation("studio").append([HumanMessage("From a fast clock", id="f1")], created_at=ahead)
    moved(memory, one, other, tmp_path)
    assert snapshot(memory, other) == snapshot(memory, one)


def test_what_a_person_deleted_from_a_board_does_not_come_back_elsewhere(
    memory: SupabaseMemory, tmp_path: Path
) -> None:
    one, other = fresh(), fresh()
    said = memory.for_user(one).conversation("studio")
    said.append([HumanMessage("I live in Lisbon. My budget is 40 euros.", id="m0"), AIMessage("Noted.", id="m1")])
    said.board.revise()
    lisbon = next(item for item in said.board.read().items if "Lisbon" in item.text)
    kept = {item.text for item in said.board.read().items if "Lisbon" not in item.text}
    for item in said.board.read().items:
        if "Lisbon" in item.text:
            said.board.delete(item, actor=BY)
    moved(memory, one, other, tmp_path)
    there = memory.for_user(other).conversation("studio")
    there.board.revise()
    assert lisbon.text not in {item.text for item in there.board.read().items}
    assert kept <= {item.text for item in there.board.read().items}


def test_a_summary_that_a_person_wrote_stands_elsewhere(memory: SupabaseMemory, tmp_path: Path) -> None:
    one, other = fresh(), fresh()
    said = memory.for_user(one).conversation("studio")
    said.append([HumanMessage(f"Glaze number {n} is blue and costs {n} euros.", id=f"m{n}") for n in range(30)])
    policy = SummaryPolicy(keep_messages=2, input_characters=400, max_characters=2000)
    assert len(said.summaries.make(policy=policy).segments) > 1
    first = said.summaries.list()[0]
    said.summaries.edit(first.number, "Thirty glazes.", actor=BY)
    moved(memory, one, other, tmp_path)
    assert [s.content for s in memory.for_user(other).conversation("studio").summaries.list()] == ["Thirty glazes."]
    assert snapshot(memory, other) == snapshot(memory, one)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def _change(conversation: Conversation, item: BoardItem, how: str) -> None:
    """What a person does to an item that a model wrote from a quote."""
    if how == "pinned":
        conversation.board.pin(item, actor=BY)
    elif how == "edited":
        conversation.board.edit(item, actor=BY, text=f"{item.text}, I think")
    elif how == "deleted":
        conversation.board.delete(item, actor=BY)
    elif how == "closed" and item.kind == "action":
        conversation.board.edit(item, actor=BY, state="done")


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
    summary=st.none() | texts,
    changed=st.sampled_from(["pinned", "edited", "deleted", "closed", "left"]),
    rated=st.none() | st.integers(0, 4).map(lambda number: number / 4),
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
    summary: str | None,
    changed: str,
    rated: float | None,
) -> None:
    one, other = fresh(), fresh()
    conversation = memory.for_user(one).conversation("studio")
    for message, time in said:
        conversation.append([message], metadata=metadata or None, created_at=time)
    conversation.append(
        [HumanMessage("I live in Lisbon. My budget is 40 euros.", id="end"), AIMessage("Noted.", id="e")]
    )
    conversation.board.revise()
    for written in conversation.board.read().items[:2]:
        _change(conversation, written, changed)
    if summary is not None:
        with suppress(InvalidInputError):  # it has no words
            conversation.board.edit_summary(summary, actor=BY)
    if rated is not None:
        conversation.index()
        memory.for_user(one).privacy.rate(conversation.chunks.list()[-1], actor=BY, importance=rated)
    for text in facts:
        try:
            item = conversation.board.add("fact", text, actor=BY)
            if len(text) % 2:
                conversation.board.delete(item, actor=BY)
            elif len(text) % 3:
                conversation.board.pin(item, actor=BY)
        except InvalidInputError:
            continue  # it has no words
    try:
        conversation.update(title=title, metadata=metadata)
    except InvalidInputError:
        conversation.update(metadata={"a": 1})
    for topic in topics:
        conversation.opt_out(topic, actor=BY)
    if not remembered:
        conversation.opt_out(actor=BY)
    moved(memory, one, other, tmp_path)
    assert snapshot(memory, other) == snapshot(memory, one)
    there = memory.for_user(other).conversation("studio")
    for each in (conversation, there):
        each.index()
    assert [_weighed(chunk) for chunk in there.chunks.list()] == [
        _weighed(chunk) for chunk in conversation.chunks.list()
    ]


def _weighed(chunk: Chunk) -> tuple[str, float]:
    return chunk.content, chunk.importance


def test_what_people_set_of_a_conversation_without_messages_is_equal_elsewhere(
    memory: SupabaseMemory, tmp_path: Path
) -> None:
    one, other = fresh(), fresh()
    said = memory.for_user(one).conversation("studio")
    said.append([HumanMessage("I live in Lisbon.", id="m0")])
    said.update(title="A kiln", metadata={"color": "blue"})
    said.board.add("fact", "The kiln is blue", actor=BY)
    said.board.edit_summary("It is about a kiln.", actor=BY)
    said.forget_message("m0")
    memory.for_user(one).conversation("empty").append([HumanMessage("Hello", id="m0")])
    memory.for_user(one).conversation("empty").forget_message("m0")
    path = moved(memory, one, other, tmp_path)
    assert [len(each[7]) for each in snapshot(memory, one)[1:]] == [0, 0]
    assert snapshot(memory, other) == snapshot(memory, one)
    assert memory.for_user(other).conversation("studio").board.read().items
    again = import_conversations(memory.for_user(other), jsonl(path))
    assert (again.restored, again.lost) == (0, {})


_SAID: Final = {
    "clay": "The porcelain cracked in the kiln because the glaze was thick.",
    "bowl": "A bowl of porcelain needs a slow kiln and a thin glaze.",
    "rye": "The sourdough needs more rye flour and a warm oven.",
    "run": "The marathon needs new shoes and a training plan.",
}


def _marked(memory: SupabaseMemory, user_id: str) -> list[tuple[Any, ...]]:
    """Return what a person made of each topic, and what still names it."""
    found = memory.for_user(user_id).topics.read(hidden=True, quotes=0)
    return sorted((each.id, each.name, each.named_by, each.hidden, each.parts) for each in found)


def test_what_a_person_made_of_topics_is_equal_elsewhere(memory: SupabaseMemory, tmp_path: Path) -> None:
    one, other = fresh(), fresh()
    source, target = memory.for_user(one), memory.for_user(other)
    for thread, text in _SAID.items():
        source.conversation(thread).append([HumanMessage(text, id=thread)])
        source.conversation(thread).index()
    source.topics.update()
    clay, rye, run = (
        next(each for each in source.topics.read() if word in each.words) for word in ("porcelain", "rye", "marathon")
    )
    source.topics.rename(clay, "Pottery", actor=BY)
    source.topics.merge(rye, run, actor=BY)
    source.topics.rename(rye, "Bread", actor=BY)
    source.topics.hide(run, actor=BY)
    path = moved(memory, one, other, tmp_path)
    (line,) = [each for each in map(json.loads, path.read_text().splitlines()) if each["kind"] == "topics"]
    assert [each["merged_into"] for each in line["topics"]] == [None, None, run.id]
    assert _marked(memory, other) == _marked(memory, one)

    # What is found there goes on from them, so that a repeat finds them, too.
    for thread in _SAID:
        target.conversation(thread).index()
    target.topics.update()
    assert _marked(memory, other) == _marked(memory, one)
    assert {each.id: each.episodes for each in target.topics.read(hidden=True)} == {clay.id: 2, run.id: 2}
    again = import_conversations(target, jsonl(path))
    assert (again.restored, again.refused) == (0, 0)
    assert _marked(memory, other) == _marked(memory, one)
    path_back = tmp_path / "back.jsonl"
    export_conversations(target, path_back)
    (back,) = [each for each in map(json.loads, path_back.read_text().splitlines()) if each["kind"] == "topics"]
    # Of words that are equally good each finding takes others.
    by_id, first = ({each["id"]: {**each, "words": None} for each in found["topics"]} for found in (back, line))
    assert by_id == first
    assert all(each["words"] for each in back["topics"] if each["merged_into"] is None)

    # What was set here stays, and what may not be remembered is refused.
    target.topics.rename(clay, "Ceramics", actor="ben")
    import_conversations(target, jsonl(path))
    assert next(each.name for each in target.topics.read() if each.id == clay.id) == "Ceramics"
    third = fresh()
    memory.for_user(third).privacy.opt_out("bread", actor=BY)
    refused = import_conversations(memory.for_user(third), jsonl(path))
    assert refused.refused == 1
    assert "Bread" not in {each.name for each in memory.for_user(third).topics.read(hidden=True)}


def test_topics_are_exported_of_a_whole_user_alone(memory: SupabaseMemory, tmp_path: Path) -> None:
    one = fresh()
    source = memory.for_user(one)
    source.conversation("clay").append([HumanMessage(_SAID["clay"], id="m0")])
    source.conversation("clay").index()
    source.topics.update()
    path = tmp_path / "some.jsonl"
    export_conversations(source, path)
    assert '"topics"' not in path.read_text()  # nobody made anything of it
    source.topics.rename(source.topics.read()[0], "Pottery", actor=BY)
    export_conversations(source, path, thread_id="clay")
    assert '"topics"' not in path.read_text()
    export_conversations(source, path)
    assert '"topics"' in path.read_text()


def test_what_retention_does_not_keep_is_no_part_of_an_export(
    conn_string: str, memory: SupabaseMemory, tmp_path: Path
) -> None:
    one, other = fresh(), fresh()
    said = memory.for_user(one).conversation("studio")
    old = datetime.now(UTC) - timedelta(days=40)
    said.append([HumanMessage("I live in Lisbon.", id="m0"), AIMessage("Noted.", id="m1")], created_at=old)
    filled(said)
    said.index()
    memory.for_user(one).privacy.rate(said.chunks.list()[0], actor=BY, useful=True)
    for retention, kept in (
        (Retention(max_age=timedelta(days=30)), {"title", "summary", "items", "deleted"}),
        (Retention(max_age=timedelta(days=30), max_summary_age=timedelta(seconds=1)), {"title"}),
        (None, {"title", "summary", "items", "deleted", "ratings"}),
    ):
        if retention is not None and retention.max_summary_age == timedelta(seconds=1):
            with psycopg.connect(conn_string) as connection:
                connection.execute(
                    "update memory.conversation_summary_boards set updated_at = now() - interval '1 day'"
                    " where user_id = %s", [one],
                )  # fmt: skip
        with SupabaseMemory.from_conn_string(
            conn_string, config=MemoryConfig(recall=None), retention=retention
        ) as keeping:
            path = tmp_path / "kept.jsonl"
            export_conversations(keeping.for_user(one), path)
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        found = {name for line in lines if line["kind"] == "edits" for name in line["edits"]}
        assert found | {"title"} == kept
        assert ("I live in Lisbon." in path.read_text()) == (retention is None)
    with SupabaseMemory.from_conn_string(
        conn_string, config=MemoryConfig(recall=None), retention=Retention(max_age=timedelta(milliseconds=1))
    ) as nothing:
        export_conversations(nothing.for_user(one), path)
        import_conversations(memory.for_user(other), jsonl(path))
        assert memory.for_user(other).conversation("studio").count() == 0
        info = memory.for_user(other).conversation("studio").info()
        assert info.title == "A kiln"


def test_messages_that_a_forked_graph_left_are_exported(memory: SupabaseMemory, tmp_path: Path) -> None:
    saver = InMemorySaver()

    def answer(state: MessagesState) -> dict[str, list[AIMessage]]:
        return {"messages": [AIMessage(f"Answer {len(state['messages'])}")]}

    user = fresh()
    config: Any = {"configurable": {"thread_id": "kiln", "user_id": user}}
    made = StateGraph(MessagesState).add_node("answer", answer).add_node("save", SaveTurnNode(memory))
    graph = made.add_edge(START, "answer").add_edge("answer", "save").compile(checkpointer=saver)
    graph.invoke({"messages": [HumanMessage("First?")]}, config)
    before: Any = {"configurable": {**graph.get_state(config).config["configurable"], "user_id": user}}
    graph.invoke({"messages": [HumanMessage("Second?")]}, config)
    graph.invoke({"messages": [HumanMessage("Another?")]}, before)
    receipt = export_conversations(memory.for_user(user), tmp_path / "x.jsonl")
    assert (receipt.messages, receipt.superseded) == (4, 2)
    lines = [json.loads(line) for line in (tmp_path / "x.jsonl").read_text().splitlines()]
    left = [line for line in lines if line["kind"] == "superseded"]
    assert [line["payload"]["data"]["content"] for line in left] == ["Second?", "Answer 3"]
    other = fresh()
    told = import_conversations(memory.for_user(other), jsonl(tmp_path / "x.jsonl"))
    assert memory.for_user(other).conversation("kiln").count() == 4
    assert {what: count for what, (count, _) in told.lost.items()} == {
        "superseded messages, which an import leaves out": 2
    }
