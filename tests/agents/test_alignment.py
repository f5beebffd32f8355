"""Histories that are sent again as dicts without ids: stored messages are stored once, in their place."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph

from langchain_supabase_memory import (
    PERSONAL_DATA,
    SaveTurnNode,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.agents.run.alignment import ComparableMessage, align, align_around
from tests.agents.test_middleware import Broken
from tests.chat_models import ScriptedModel, look_up
from tests.each_case import each_case
from tests.operations.test_branches import WAYS, texts

Said = dict[str, Any]


class Bounded(MessagesState):
    summarized_messages: list[AnyMessage]


class Page:
    """An application that keeps the history itself, and sends it whole: no ids, no checkpointer."""

    def __init__(self, memory: SupabaseMemory, way: str, *, sends_history: bool = False) -> None:
        self.memory, self.way, self.sends_history = memory, way, sends_history
        self.chat = ScriptedModel(script=lambda given: f"re {given[-1].text}")
        self.said: list[Said] = []
        self.graph: Any = self._agent() if way.startswith("middleware") else self._nodes()

    def _agent(self) -> Any:
        return create_agent(
            self.chat, [look_up], middleware=[SupabaseMemoryMiddleware(self.memory, sends_history=self.sends_history)]
        )

    def _nodes(self) -> Any:
        def model(state: Any) -> Any:
            return {"messages": [self.chat.invoke(state["summarized_messages"])]}

        builder = StateGraph(Bounded)
        builder.add_node("load", SupabaseSummarizationNode(self.memory, sends_history=self.sends_history))
        builder.add_node("model", model)
        builder.add_node("save", SaveTurnNode(self.memory, sends_history=self.sends_history))
        for first, then in ((START, "load"), ("load", "model"), ("model", "save"), ("save", END)):
            builder.add_edge(first, then)
        return builder.compile()

    async def ask(self, text: str, most: int = 1000) -> list[BaseMessage]:
        """Send the last messages and a question, and keep the answer."""
        self.said.append({"role": "user", "content": text})
        given, settings = {"messages": self.said[-most:]}, {"configurable": {"thread_id": "t"}}
        if self.way.endswith("-sync"):
            made = self.graph.invoke(given, settings)
        else:
            made = await self.graph.ainvoke(given, settings)
        self.said.append({"role": "assistant", "content": str(made["messages"][-1].text)})
        return list(made["messages"])

    @property
    def stored(self) -> list[str]:
        return texts([each.message for each in self.memory.conversation("t").read()])

    @property
    def kept(self) -> list[str]:
        return [str(each["content"]) for each in self.said]

    def is_right(self, count: int | None = None) -> None:
        """The store and the last prompt have what the page has, and nothing twice."""
        assert self.stored == self.kept
        assert texts(self.chat.shown[-1]) == self.kept[:-1]
        assert self.memory.conversation("t").coverage().complete
        if count is not None:
            assert self.memory.conversation("t").coverage().ranges[-1].to_sequence == count - 1


@pytest.mark.parametrize("way", WAYS)
async def test_a_history_sent_whole_is_stored_once(memory: SupabaseMemory, way: str) -> None:
    page = Page(memory, way)
    for number in range(6):
        await page.ask(f"word {number}")
        page.is_right(2 * number + 2)


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-async"])
async def test_equal_messages_stay_in_their_places(memory: SupabaseMemory, way: str) -> None:
    page = Page(memory, way)
    for number, text in enumerate(["ok", "ok", "no", "ok", "ok", "ok"]):
        await page.ask(text)
        page.is_right(2 * number + 2)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", ["q", "ok"])
async def test_a_window_of_the_last_ones_keeps_what_is_older(memory: SupabaseMemory, way: str, text: str) -> None:
    page = Page(memory, way)
    for number in range(7):
        await page.ask(text if text == "ok" else f"word {number}", most=4)
        page.is_right(2 * number + 2)


@pytest.mark.parametrize("way", WAYS)
async def test_a_question_put_otherwise_takes_the_place_of_the_old_one(memory: SupabaseMemory, way: str) -> None:
    """The application says that what it sends is all there is."""
    page = Page(memory, way, sends_history=True)
    for text in ("one", "two", "three", "four"):
        await page.ask(text)
    del page.said[4:]
    await page.ask("other")
    page.is_right(10)
    await page.ask("on")
    page.is_right(12)


@pytest.mark.parametrize("way", WAYS)
async def test_an_older_history_takes_nothing_away(memory: SupabaseMemory, way: str) -> None:
    """It may be that of another tab: who does not say that it is all there is removes nothing."""
    page = Page(memory, way)
    for text in ("one", "two", "three", "four"):
        await page.ask(text)
    before = page.stored
    del page.said[4:]
    await page.ask("other")
    assert page.stored == [*before, "other", "re other"]


async def test_also_long_ago(memory: SupabaseMemory) -> None:
    page = Page(memory, "middleware-sync", sends_history=True)
    for number in range(20):
        await page.ask(f"word {number}")
    del page.said[2:]
    await page.ask("other")
    page.is_right(42)


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-async"])
@pytest.mark.parametrize("place", [0, 1, 3, 5])
async def test_what_the_page_edits_is_edited(memory: SupabaseMemory, way: str, place: int) -> None:
    page = Page(memory, way)
    for text in ("one", "two", "three"):
        await page.ask(text)
    page.said[place]["content"] = "said otherwise"
    await page.ask("four")
    page.is_right(8)


@pytest.mark.parametrize("way", ["middleware-sync", "middleware-async"])
async def test_a_question_asked_again_after_a_failure_is_stored_once(memory: SupabaseMemory, way: str) -> None:
    page = Page(memory, way)
    await page.ask("one")
    page.chat.script, script = lambda _: 1 / 0, page.chat.script  # type: ignore[assignment, return-value]
    with pytest.raises(ZeroDivisionError):
        await page.ask("two")
    page.chat.script = script
    page.said.pop()
    await page.ask("two")
    page.is_right(4)


async def test_another_history_is_stored_whole(memory: SupabaseMemory) -> None:
    page = Page(memory, "middleware-sync")
    await page.ask("one")
    page.said[:] = [{"role": "user", "content": "elsewhere"}, {"role": "assistant", "content": "indeed"}]
    await page.ask("here")
    assert page.stored == ["one", "re one", "elsewhere", "indeed", "here", "re here"]


async def test_what_came_before_all_that_is_stored_is_not_put_behind_it(memory: SupabaseMemory) -> None:
    """A page that begins every history with its own greeting, and sends a window."""
    page = Page(memory, "middleware-sync")
    for number in range(5):
        page.said.append({"role": "user", "content": f"word {number}"})
        greeted: list[Any] = [{"role": "assistant", "content": "Welcome!"}, *page.said[-3:]]
        made = page.graph.invoke({"messages": greeted}, {"configurable": {"thread_id": "t"}})
        page.said.append({"role": "assistant", "content": made["messages"][-1].text})
    assert page.stored == ["Welcome!", *page.kept]


async def test_tool_calls_are_aligned_with_their_results(memory: SupabaseMemory) -> None:
    def script(given: list[BaseMessage]) -> AIMessage | str:
        if given[-1].type == "human":
            return AIMessage("", tool_calls=[{"name": "look_up", "args": {"word": given[-1].text}, "id": "c"}])
        return "found"

    graph: Any = create_agent(ScriptedModel(script=script), [look_up], middleware=[SupabaseMemoryMiddleware(memory)])
    said: list[Said] = []
    for number, word in enumerate(("kiln", "oven", "kiln")):
        said.append({"role": "user", "content": word})
        made = graph.invoke({"messages": said}, {"configurable": {"thread_id": "t"}})["messages"]
        call = {"type": "function", "id": "c", "function": {"name": "look_up", "arguments": f'{{"word": "{word}"}}'}}
        said += [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": f"meaning of {word}", "tool_call_id": "c"},
            {"role": "assistant", "content": "found"},
        ]
        assert memory.conversation("t").count() == len(made) == 4 * number + 4


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-async"])
async def test_what_is_redacted_is_aligned_too(conn_string: str, user_id: str, way: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, redactor=PERSONAL_DATA) as memory:
        page = Page(memory, way)
        for number in range(4):
            await page.ask(f"{number}: write to ana{number}@example.com")
            assert memory.conversation("t").count() == 2 * number + 2
        assert "@example.com" not in str(page.stored)


async def test_the_answer_comes_with_the_ids_that_are_stored(memory: SupabaseMemory) -> None:
    page = Page(memory, "middleware-sync")
    await page.ask("one")
    made = await page.ask("two")
    assert [each.id for each in made] == [
        each.message_id for each in memory.conversation("t").read(columns=["message_id"])
    ]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("role", ["user", "assistant"])
@pytest.mark.parametrize("sends_history", [False, True])
async def test_a_history_with_ids_for_one_role_is_stored_once(
    memory: SupabaseMemory, way: str, role: str, sends_history: bool
) -> None:
    """A page that names its questions, and knows of the answers only what they say; or the other way round."""
    page = Page(memory, way, sends_history=sends_history)
    for number in range(5):
        made = await page.ask(f"word {number}" if number else "ok")
        page.is_right(2 * number + 2)
        for said, stored in zip(page.said[-2:], made[-2:], strict=True):
            if said["role"] == role:
                said["id"] = stored.id


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-async"])
async def test_an_application_that_keeps_the_questions_it_sent_stores_all_once(
    memory: SupabaseMemory, way: str
) -> None:
    """LangGraph gives the question's own object an id; the answer is kept as its text alone."""
    page = Page(memory, way)
    said: list[BaseMessage] = []
    for number in range(4):
        said.append(HumanMessage(f"word {number}"))
        given, settings = {"messages": said}, {"configurable": {"thread_id": "t"}}
        is_sync = way.endswith("-sync")
        made = page.graph.invoke(given, settings) if is_sync else await page.graph.ainvoke(given, settings)
        said.append(AIMessage(str(made["messages"][-1].text)))
        assert page.stored == [str(each.text) for each in said]
        assert texts(page.chat.shown[-1]) == page.stored[:-1]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("has_begun", [False, True])
async def test_a_history_sent_whole_is_stored_once_through_an_outage(
    memory: SupabaseMemory, way: str, has_begun: bool
) -> None:
    page = Page(memory, way)
    if has_begun:
        await page.ask("before")
    transport = memory._services.transport
    memory._services.transport = Broken(transport)  # type: ignore[assignment]
    for number in range(3):
        await page.ask(f"word {number}")
    memory._services.transport = transport
    await page.ask("after")
    page.is_right()
    await page.ask("and on")
    page.is_right()


# --- The function itself


def words(text: str) -> list[ComparableMessage]:
    """A message for each word; those in capitals were answers."""
    return [ComparableMessage("assistant" if each.isupper() else "user", each, "[]") for each in text.split()]


@each_case(
    ("state", "stored", "expected"),
    [
        ("a A b", "a A", {0: 0, 1: 1}),
        ("b B c", "a A b B", {0: 2, 1: 3}),
        ("a A a A a", "a A a A", {0: 0, 1: 1, 2: 2, 3: 3}),
        ("a A a", "a A a A a A", {0: 4, 1: 5}),
        ("a A b", "a A b", {0: 0, 1: 1, 2: 2}),
        ("a A x", "a A b B c C", {0: 0, 1: 1}),
        ("x A b B c", "a A b B", {0: 0, 1: 1, 2: 2, 3: 3}),
        ("a A b X c", "a A b B", {0: 0, 1: 1, 2: 2, 3: 3}),
        ("y Y z", "a A b B", None),
        ("X A b", "a A", {1: 1}),  # not a question that became an answer
    ],
)
def test_places(state: str, stored: str, expected: dict[int, int] | None) -> None:
    said = words(state)
    assert align(said, len(said) - 1, words(stored), is_whole=True) == expected


@each_case(
    ("state", "stored", "known", "expected"),
    [
        ("a A b", "a A", {0: 0}, {1: 1}),
        ("a A b", "a A", {1: 1}, {0: 0}),
        ("a A b B c", "a A b B", {0: 0, 2: 2}, {1: 1, 3: 3}),
        ("a X b B c", "a A b B", {0: 0, 2: 2}, {1: 1, 3: 3}),  # the page edited an answer
        ("x A b B c", "a A b B", {1: 1, 3: 3}, {0: 0, 2: 2}),  # and a question
        ("a X c", "a A", {0: 0}, {1: 1}),
        ("a A x", "a A b B", {0: 0}, {1: 1}),  # another question in place of a later one
        ("b B c", "a A b B", {0: 2}, {1: 3}),  # a window
        ("x X b B c", "a A b B", {2: 2}, {0: 0, 1: 1, 3: 3}),
        ("a A b", "a A b", {1: 1}, {0: 0, 2: 2}),  # asked again after a failure
        ("a A b", "a A A b", {0: 0, 2: 3}, {1: 1}),
        ("b a", "a b", {0: 1, 1: 0}, None),
    ],
)
def test_places_around_known_messages(
    state: str, stored: str, known: dict[int, int], expected: dict[int, int] | None
) -> None:
    said = words(state)
    found = align_around(said, len(said) - 1, words(stored), known, is_whole=True)
    assert found == (None if expected is None else {**known, **expected})


def test_around_known_messages_no_message_has_two_places(fuzz: int) -> None:
    for seed in range(300 * fuzz):
        rng = random.Random(seed)
        stored = words(" ".join(rng.choice(["a", "b", "A", "B"]) for _ in range(rng.randrange(1, 12))))
        state = words(" ".join(rng.choice(["a", "b", "A", "B"]) for _ in range(rng.randrange(1, 12))))
        count = rng.randrange(1, min(len(state), len(stored)) + 1)
        known = dict(
            zip(
                sorted(rng.sample(range(len(state)), count)), sorted(rng.sample(range(len(stored)), count)), strict=True
            )
        )
        for place, row in known.items():
            state[place] = stored[row]
        found = align_around(state, rng.randrange(len(state)), stored, known, is_whole=rng.random() < 0.5)
        assert found is not None
        assert len(set(found.values())) == len(found)
        places = [found[place] for place in sorted(found)]
        assert places == sorted(places)
        assert known.items() <= found.items()
        assert all(state[place].role == stored[other].role for place, other in found.items())


def test_no_message_has_two_places(fuzz: int) -> None:
    for seed in range(300 * fuzz):
        rng = random.Random(seed)
        stored = words(" ".join(rng.choice(["a", "b", "A", "B"]) for _ in range(rng.randrange(12))))
        state = words(" ".join(rng.choice(["a", "b", "A", "B"]) for _ in range(rng.randrange(1, 12))))
        found = align(state, len(state) - 1, stored, is_whole=rng.random() < 0.5) or {}
        assert len(set(found.values())) == len(found)
        places = [found[place] for place in sorted(found)]
        assert places == sorted(places)
        assert all(state[place].role == stored[other].role for place, other in found.items())


@each_case("most", [3, 5, 1000])
def test_a_talk_is_followed_turn_by_turn(most: int, fuzz: int) -> None:
    for seed in range(60 * fuzz):
        rng = random.Random(seed)
        stored: list[ComparableMessage] = []
        for _ in range(12):
            state: Sequence[ComparableMessage] = [*stored, *words(rng.choice(["a", "b"]))][-most:]
            found = (align(state, len(state) - 1, stored, is_whole=True) if len(state) > 1 else None) or {}
            first = len(stored) + 1 - len(state)
            assert found == {place: first + place for place in range(len(state) - 1)}
            stored += [state[-1], *words(rng.choice(["A", "B"]))]
