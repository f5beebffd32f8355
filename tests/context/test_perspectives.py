"""A perspective: the order of a board's items for one agent, over the same items."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from benchmarks import perspectives
from langchain_supabase_memory import (
    ContextBudget,
    LoadContextNode,
    MemoryConfig,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.context.board import BoardPart, line, max_items_of
from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.operations.boards.board import BoardItem
from langchain_supabase_memory.operations.boards.kinds import BoardItemKind
from langchain_supabase_memory.operations.boards.perspective import HIGHEST_WEIGHT, LONGEST_BRIEF, ranked, scores
from langchain_supabase_memory.types import Perspective
from langchain_supabase_memory.values import ConversationKey
from tests.chat_models import says
from tests.conftest import Caller
from tests.context.test_context_board import BACKGROUND, MIDDLE, new, shown, talk, write, writing
from tests.each_case import each_case
from tests.owners import conversation_of

BOOKKEEPER: Final = Perspective("payments, invoices, taxes", kinds={"action": 1.5, "topic": 0})
COOK: Final = Perspective("meals, allergies, ingredients")

ITEMS: Final = [
    new("topic", "payments", 0),
    new("entity", "Ana", 2, type="person"),
    new("fact", "Ana paid the invoice of May", 4, importance=0.5),
    new("fact", "Ana is allergic to cashews", 6, importance=0.9),
    new("question", "Which ingredients are left?", 8),
    new("action", "Pay the taxes", 10),
    new("action", "Book the boat to Siquijor", 12),
]
PLAIN: Final = [
    "Book the boat to Siquijor",
    "Pay the taxes",
    "Which ingredients are left?",
    "Ana is allergic to cashews",
    "Ana paid the invoice of May",
    "Ana",
    "payments",
]
FOR_BOOKS: Final = [
    "Pay the taxes",
    "Ana paid the invoice of May",
    "Book the boat to Siquijor",
    "Ana is allergic to cashews",
    "Which ingredients are left?",
    "Ana",
]

_SEEN = datetime(2026, 5, 1, tzinfo=UTC)


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, config=MemoryConfig(recall=None)
    ) as memory:
        yield memory


def item(kind: BoardItemKind, text: str, importance: float = 0.7, **more: Any) -> BoardItem:
    made = BoardItem(
        id=text, kind=kind, text=text, state="current", type=None, quote=None, message_ids=[], sequences=[1],
        importance=importance, first_seen_at=_SEEN, last_seen_at=_SEEN, version=1, superseded_by=None,
        superseded_at=None, pinned=False, author="m", edited_by=None, edited_at=None,
    )  # fmt: skip
    return replace(made, **more)


def texts(items: list[BoardItem]) -> list[str]:
    return [each.text for each in items]


@each_case("role", perspectives.roles())
def test_each_role_is_shown_more_of_what_it_needs(role: perspectives.Role) -> None:
    assert role.share(role.perspective) > role.share(None)


def test_the_boards_that_are_measured_are_labeled_whole() -> None:
    roles = perspectives.roles()
    assert len({role.board for role in roles}) == 2
    assert len(roles) == 8
    assert all(len(role.document["items"]) == 60 and 10 <= len(role.needed) <= 12 for role in roles)


def test_a_score_is_weight_times_importance_times_fit() -> None:
    items = [item("fact", "It rains", 0.4), item("action", "Walk"), item("topic", "walks"), item("fact", "A tax", 0.4)]
    plain = scores(items, Perspective(kinds={"action": 2}))
    assert plain == pytest.approx([0.4, 1.4, 0.35, 0.4]), "a name counts half"
    fitting = scores(items, Perspective("taxes"))
    assert fitting[:3] == pytest.approx([0.4, 0.7, 0.35])
    assert fitting[3] > 0.8


def test_pinned_items_are_first_and_equal_ones_in_the_order_of_their_last_mention() -> None:
    items = [
        item("fact", "older"),
        item("fact", "newer", last_seen_at=_SEEN + timedelta(days=1)),
        item("topic", "pinned", pinned=True),
        item("fact", "invoice", 0.4),
        item("topic", "left out"),
        item("topic", "a person's", edited_at=_SEEN),
    ]
    order = ranked(items, BOOKKEEPER)
    assert texts(order) == ["pinned", "invoice", "newer", "older", "a person's"]
    assert texts(ranked(items[::-1], BOOKKEEPER)) == texts(order), "whatever order they come in"
    assert ranked([], BOOKKEEPER) == []


def test_agents_see_the_same_items_in_other_orders() -> None:
    items = [item("fact", "Ana is allergic to nuts"), item("fact", "The invoice is paid"), item("fact", "It rains")]
    books, cook = ranked(items, Perspective("invoices")), ranked(items, COOK)
    assert books != cook
    assert sorted(texts(books)) == sorted(texts(cook)) == sorted(texts(items))
    assert all(any(each is one for one in items) for each in books)


def test_words_match_in_tagalog_too() -> None:
    items = [item("fact", "Umulan sa Cebu"), item("action", "Magbayad ng buwis"), item("fact", "Nagluluto si Ana")]
    assert ranked(items, Perspective("pagbabayad ng utang at buwis"))[0].text == "Magbayad ng buwis"
    assert ranked(items, Perspective("mga lutuin"))[0].text == "Nagluluto si Ana"
    # A brief in one language, items in another.
    assert ranked(items, Perspective("luto, bayad"))[0].text in ("Magbayad ng buwis", "Nagluluto si Ana")


@each_case(
    ("named", "says"),
    [
        ({}, "needs a brief or weights"),
        ({"brief": "  "}, "needs a brief or weights"),
        ({"brief": 3}, "brief must be a text, not a number"),
        ({"brief": None}, "brief must be a text, not None"),
        ({"brief": "x" * (LONGEST_BRIEF + 1)}, "more than 2,000 characters"),
        ({"kinds": ["action"]}, "kinds must be a mapping from kinds to weights"),
        ({"kinds": {"actions": 1}}, 'Did you mean "action"?'),
        ({"kinds": {3: 1}}, "kinds is none of the choices"),
        ({"kinds": {"action": -1}}, "kinds['action'] must be a number from 0"),
        ({"kinds": {"action": float("nan")}}, "kinds['action'] must be a number from 0"),
        ({"kinds": {"action": float("inf")}}, "kinds['action'] is more than 10"),
        ({"kinds": {"action": 10.1}}, "kinds['action'] is more than 10"),
        ({"kinds": {"action": "2"}}, "kinds['action'] must be a number from 0, not a text"),
        ({"kinds": {"action": True}}, "kinds['action'] must be a number from 0"),
        ({"kinds": {"action": None}}, "kinds['action'] must be a number from 0"),
    ],
)
def test_a_perspective_that_is_none_is_refused(named: Any, says: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Perspective(**named)
    assert says in str(refused.value)


def test_a_perspective_is_a_frozen_value() -> None:
    weights: dict[BoardItemKind, float] = {"action": HIGHEST_WEIGHT, "topic": 0}
    perspective = Perspective("x" * LONGEST_BRIEF, weights)
    weights["action"] = 1
    assert perspective.weight("action") == HIGHEST_WEIGHT
    assert (perspective.weight("topic"), perspective.weight("fact")) == (0, 1)
    assert perspective == Perspective("x" * LONGEST_BRIEF, {"action": 10, "topic": 0})
    assert hash(perspective) == hash(replace(perspective))
    assert pickle.loads(pickle.dumps(perspective)) == perspective
    with pytest.raises(AttributeError):
        perspective.brief = "other"  # type: ignore[misc]


def test_a_perspective_of_another_class_is_refused_everywhere(memory: SupabaseMemory) -> None:
    wrong: Any = "payments"
    conversation = memory.conversation("t")
    for call in (
        lambda: conversation.context("Hi", perspective=wrong),
        lambda: conversation.board.read(perspective=wrong),
        lambda: SupabaseMemoryMiddleware(memory, perspective=wrong),
        lambda: LoadContextNode(memory, perspective=wrong),
        lambda: SupabaseSummarizationNode(memory, perspective=wrong),
    ):
        with pytest.raises(ConfigurationError, match="perspective must be a Perspective, not a text") as refused:
            call()
        assert 'Pass perspective=Perspective("payments, invoices")' in str(refused.value)


async def test_a_pack_and_a_board_have_the_order_of_the_perspective(caller: Caller, user_id: str) -> None:
    conversation = conversation_of(caller.service, thread_id="t", user_id=user_id)
    await caller(conversation.append, talk())
    flow = writing(ConversationKey("t", user_id, "default"), ITEMS, notes="Answer shortly.")
    if caller.color == "async":
        await caller.service._services.arun(flow)
    else:
        caller.service._services.run(flow)
    bounds: dict[str, Any] = {"budget": MIDDLE, "policy": BACKGROUND}
    assert texts((await caller(conversation.context, "And now?", **bounds)).board.items) == PLAIN
    pack = await caller(conversation.context, "And now?", perspective=BOOKKEEPER, **bounds)
    assert texts(pack.board.items) == FOR_BOOKS
    listed = [each for each in shown(pack.prompt).splitlines() if each.startswith("- ")]
    assert listed == ["- notes: Answer shortly.", *map(line, pack.board.items)]
    board = await caller(conversation.board.read)
    seen = await caller(conversation.board.read, perspective=BOOKKEEPER)
    assert texts(seen.items) == FOR_BOOKS
    assert (seen.unlisted, board.unlisted) == (1, 0)
    assert replace(seen, items=board.items, unlisted=0) == board
    # A person keeps what they write in sight of every agent.
    await caller(conversation.board.add, "topic", "regattas", actor="maya")
    named = {each.text: each for each in board.items}
    await caller(conversation.board.pin, named["Ana"], actor="maya")
    pack = await caller(conversation.context, "And now?", perspective=BOOKKEEPER, **bounds)
    assert texts(pack.board.items) == ["Ana", *FOR_BOOKS[:-1], "regattas"]
    # What no longer holds comes last.
    await caller(conversation.board.edit, named["Pay the taxes"], actor="maya", state="done")
    seen = await caller(conversation.board.read, perspective=BOOKKEEPER)
    assert [seen.items[0].text, seen.items[-1].text] == ["Ana", "Pay the taxes"]


def test_a_board_that_does_not_exist_is_empty_in_every_perspective(memory: SupabaseMemory) -> None:
    assert memory.conversation("t").board.read(perspective=COOK).is_empty
    assert not memory.conversation("t").context("Hi", perspective=COOK).board


def test_an_old_item_is_found_behind_many_newer_ones(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append(talk())
    write(
        memory,
        [new("fact", "The taxes are due in May", 0), *(new("fact", f"It rained on {n}", n) for n in range(1, 60))],
    )
    bounds: dict[str, Any] = {"budget": ContextBudget(characters=8_000, board=0.05), "policy": BACKGROUND}
    assert "The taxes are due in May" not in texts(conversation.context("And?", **bounds).board.items)
    pack = conversation.context("And?", perspective=BOOKKEEPER, **bounds)
    assert pack.board.items[0].text == "The taxes are due in May"
    assert pack.board.left_out
    assert max_items_of(ContextBudget(), None, BOOKKEEPER) == 0


def test_what_makes_room_lets_others_in_in_the_same_order(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    conversation.append(talk())
    write(memory, [new("fact", f"The invoice of {n} and the tax", n * 2, importance=0.9 - n / 100) for n in range(30)])
    budget = ContextBudget(characters=6_000, board=0.1)
    pack = conversation.context("weather", budget=budget, policy=BACKGROUND, query="turn 3", perspective=BOOKKEEPER)
    listed = [each.importance for each in pack.board.items]
    assert len(listed) > 3
    assert listed == sorted(listed, reverse=True)


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_two_agents_and_their_tool_loops_keep_their_own_order(memory: SupabaseMemory, color: str) -> None:
    conversation = memory.conversation("t")
    conversation.append(talk())
    write(memory, ITEMS)

    @tool
    def remind() -> str:
        """Write another item onto the board while the turn is under way."""
        conversation.board.add("action", f"Pay invoice {len(conversation.board.read().items)}", actor="maya")
        return "done"

    called = AIMessage("", tool_calls=[{"name": "remind", "args": {}, "id": "1"}])
    for perspective, first in ((BOOKKEEPER, "Pay the taxes"), (COOK, "Ana is allergic to cashews"), (None, PLAIN[0])):
        model = says(called, AIMessage("Yes."))
        middleware = SupabaseMemoryMiddleware(
            memory, budget=MIDDLE, policy=BACKGROUND, perspective=perspective, agent_id="default"
        )
        agent = create_agent(model, [remind], middleware=[middleware])
        given: Any = {"messages": [HumanMessage("And now?")]}
        config: Any = {"configurable": {"thread_id": "t"}}
        await (agent.ainvoke(given, config) if color == "async" else _awaited(agent.invoke(given, config)))
        prompts = model.shown
        boards = [[each for each in str(prompt).split("\\n") if each.startswith("- ")] for prompt in prompts]
        assert len(boards) == 2
        assert boards[0] == boards[1], "a turn keeps the board that it began with"
        assert first in boards[0][0]
        for each in conversation.board.read().items:
            if each.text.startswith("Pay invoice"):
                conversation.board.delete(each, actor="maya")


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("kind", [LoadContextNode, SupabaseSummarizationNode])
async def test_nodes_have_it_too(memory: SupabaseMemory, color: str, kind: Any) -> None:
    memory.conversation("t").append(talk())
    write(memory, ITEMS)
    node = kind(memory, budget=MIDDLE, policy=BACKGROUND, perspective=BOOKKEEPER, output_messages_key="prompt")
    config: Any = {"configurable": {"thread_id": "t"}}
    given = {"messages": [HumanMessage("And now?", id="now")]}
    update = node.invoke(given, config) if color == "sync" else await node.ainvoke(given, config)
    listed = [each for each in shown(update["prompt"]).splitlines() if each.startswith("- ")]
    assert [each.split(" [")[0].split(": ")[1] for each in listed] == FOR_BOOKS


async def _awaited(value: Any) -> Any:
    return value


def test_without_a_perspective_a_part_is_what_it_was() -> None:
    role = perspectives.roles()[0]
    part = BoardPart.from_document(role.document, 200)
    assert part.places is None
    kinds = [each.kind for each in part.items]
    assert kinds == sorted(kinds, key=["action", "question", "fact", "entity", "topic"].index)
