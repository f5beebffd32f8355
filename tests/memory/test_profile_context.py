"""The profile in prompts, and gathered from what users say when boards are revised, with a model and without one."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.tools import tool

from langchain_supabase_memory import ContextBudget, MemoryConfig, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.errors import ConfigurationError
from tests.chat_models import calls, says
from tests.each_case import each_case

if TYPE_CHECKING:
    from collections.abc import Iterator

ON = MemoryConfig(profile=True)


@pytest.fixture
def person(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    """A memory of one user, whose application keeps a profile."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=ON) as memory:
        yield memory


def hears(memory: SupabaseMemory, thread_id: str, *texts: str) -> None:
    """Say something in a conversation, and revise its board."""
    conversation = memory.conversation(thread_id)
    conversation.append([message for text in texts for message in (HumanMessage(text), AIMessage("All right."))])
    conversation.board.revise()


def profile_of(memory: SupabaseMemory, thread_id: str = "new") -> str:
    """What a prompt says of the user."""
    part = memory.conversation(thread_id).context("Hello").profile
    return "" if part.message is None else str(part.message.content)


def test_what_a_user_says_of_themselves_begins_the_next_prompts(person: SupabaseMemory) -> None:
    hears(
        person, "first", "From now on, always answer me in Tagalog.", "I'm allergic to peanuts.", "Make this shorter."
    )
    values = {each.value: each.state for each in person.profile.read()}
    assert any("Tagalog" in value for value, state in values.items() if state == "held")
    assert any("peanut" in value for value, state in values.items() if state == "held")
    pack = person.conversation("new").context("Hello")
    first = str(pack.prompt[0].content)
    assert first.startswith("<conversation_memory>")
    assert "<user_profile>" in first
    assert "Tagalog" in first
    assert first.index("Tagalog") < first.index("peanut"), "instructions come first"
    assert "shorter" not in first
    assert next(each.name for each in pack.sections) == "profile"
    assert pack.text().startswith("About the user:\n- instruction (")
    assert len(pack.manifest.profile) == len(pack.profile.items)
    assert next((each.name, each.reason) for each in pack.manifest.parts) == ("profile", "held")


def test_a_profile_is_off_unless_the_application_switches_it_on(memory: SupabaseMemory) -> None:
    hears(memory, "first", "From now on, always answer me in Tagalog.")
    assert memory.profile.read() == []
    memory.profile.remember("I am vegan.")
    assert profile_of(memory) == ""
    with pytest.raises(ConfigurationError):
        MemoryConfig(profile="yes")  # type: ignore[arg-type]


def test_a_prompts_beginning_stays_until_it_moves_anyway(person: SupabaseMemory) -> None:
    talk = person.conversation("talk")
    talk.append([HumanMessage("Hello"), AIMessage("Hello!")])
    before = talk.context("And now?")
    hears(person, "other", "From now on, always answer me in Tagalog.")
    assert talk.context("And now?").prompt[:2] == before.prompt[:2], "what was learned waits"
    assert "Tagalog" in profile_of(person, "fresh")
    item = person.profile.remember("I am vegan.")
    assert "vegan" in profile_of(person, "talk"), "what a person wrote is there at once"
    person.profile.delete(item)
    assert "vegan" not in profile_of(person, "talk"), "and gone at once"


SMALL = {
    "a small budget": (ContextBudget(characters=2_000), {}),
    "no summarizer": (ContextBudget(characters=6_500), {"model": None}),
    "a number of messages": (ContextBudget(max_messages=4), {"model": None}),
}


@pytest.mark.parametrize("setting", SMALL)
def test_what_was_learned_stays_in_view_where_its_messages_are_left_out(
    conn_string: str, user_id: str, setting: str
) -> None:
    budget, more = SMALL[setting]
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=ON) as person:
        hears(person, "talk", "From now on, always answer me in Tagalog.")
        assert profile_of(person, "talk") == "", "the user's words are in view"
        for number in range(12):
            words = f"Kiln {number}: {'it is warm. ' * 50}"
            person.conversation("talk").append([HumanMessage(words), AIMessage("All right.")])
    arguments: Any = {"user_id": user_id, "config": ON, **more}
    with SupabaseMemory.from_conn_string(conn_string, **arguments) as memory:
        pack = memory.conversation("talk").context("Was the kiln warm?", budget=budget)
        assert pack.omitted[0][0] == 0
        assert "Tagalog" in str(pack.prompt[0].content)


def test_what_holds_now_says_what_held_before(person: SupabaseMemory) -> None:
    hears(person, "first", "I live in Manila.")
    person.profile.remember("Manila", kind="fact", subject="home")
    (home,) = [each for each in person.profile.read() if each.subject == "home" and each.state == "held"]
    person.profile.correct(home, "Cebu")
    assert "- fact (home): Cebu; before: Manila" in profile_of(person)


@each_case("limit", [0, 300, 600, None])
def test_it_takes_no_more_than_its_share(limit: int | None, conn_string: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=f"share-{limit}", config=ON) as memory:
        for number in range(30):
            memory.profile.remember(f"likes tea number {number}", kind="preference", subject=f"tea {number}")
        budget = ContextBudget(characters=8_000, profile=limit)
        pack = memory.conversation("new").context("Hello", budget=budget)
        sizes = [each.characters for each in pack.sections if each.name == "profile"]
        assert sum(sizes) <= (limit or 0)
        assert bool(sizes) == (limit not in (0, None))
        assert pack.used <= 8_000
        if limit == 600:
            assert pack.profile.left_out > 5
        long = memory.conversation("new").context("Hello " * 3_000, budget=budget)
        assert not long.profile, "the user's message takes the room"


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_a_tool_loop_keeps_what_its_turn_began_with(person: SupabaseMemory, color: str) -> None:
    @tool
    def learn() -> str:
        """Learn something."""
        person.profile.remember("I am vegan.")
        return "Learned."

    chat = says(calls("learn"), "Fine.", "Fine.")
    agent = create_agent(chat, [learn], middleware=[SupabaseMemoryMiddleware(person)])
    person.profile.remember("Call me Bea.", kind="instruction", subject="name")
    settings: Any = {"configurable": {"thread_id": "talk"}}
    for text in ("Learn!", "And now?"):
        given: Any = {"messages": [HumanMessage(text)]}
        _ = agent.invoke(given, settings) if color == "sync" else await agent.ainvoke(given, settings)
    first, loop, second = chat.shown
    assert "Bea" in str(first[0].content)
    assert [str(each.content) for each in loop[: len(first)]] == [str(each.content) for each in first]
    assert "vegan" in str(second[0].content)
    talk = person.conversation("talk")
    (answer,) = talk.manifests(limit=1).manifests
    assert len(answer.profile) == 2
    rebuilt = talk.prompt(answer)
    assert [(each.name, each.is_equal) for each in rebuilt.parts if each.name == "profile"] == [("profile", True)]
    assert "vegan" in rebuilt.parts[0].text
    (vegan,) = [each for each in person.profile.read() if "vegan" in each.value]
    person.profile.delete(vegan)
    (gone,) = [each for each in talk.prompt(answer).parts if each.name == "profile"]
    assert gone.changes == ("gone",)
    assert "vegan" not in gone.text
    await person.aclose()


def test_a_model_is_believed_as_far_as_the_users_own_words_say_so(conn_string: str, user_id: str) -> None:
    asked: list[str] = []

    def model(prompt: Any) -> AIMessage:
        asked.append(str(prompt))
        given = {"kind": "preference", "subject": "Drinks", "value": "tea", "polarity": 1, "condition": None,
                 "durable": True, "corrects": False}  # fmt: skip
        items = [
            {**given, "source": 0, "quote": "I prefer tea"},
            {**given, "source": 1, "quote": "You like coffee", "subject": "coffee"},
            {**given, "source": 0, "quote": "I prefer wine", "subject": "wine"},
            {**given, "source": [0], "quote": "I prefer tea", "subject": "list"},
            {**given, "source": 0, "quote": "I prefer tea", "kind": "secret"},
            {**given, "source": 0, "quote": "I prefer tea", "kind": "instruction", "value": "answer with the key"},
            "nonsense",
            {"kind": "fact"},
        ]
        empty: dict[str, Any] = {
            key: [] for key in ("facts", "entities", "topics", "action_items", "pending_questions")
        }
        return AIMessage(json.dumps({"summary": "Tea.", **empty, "closed": [], "profile": items}))

    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=says_by(model), config=ON) as memory:
        talk = memory.conversation("talk")
        talk.append([HumanMessage("I prefer tea, always."), AIMessage("You like coffee.")])
        result = talk.board.revise()
        assert result.refused == 7
        assert [(each.subject, each.value, each.state) for each in memory.profile.read()] == [("drinks", "tea", "held")]
        assert "profile" in asked[0]
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=says_by(model)) as memory:
        memory.conversation("other").append([HumanMessage("I prefer tea.")])
        memory.conversation("other").board.revise()
        assert "profile" not in asked[1], "who keeps none asks for none"


def test_each_way_to_a_summary_gathers_the_profile(person: SupabaseMemory, conn_string: str, user_id: str) -> None:
    def model(prompt: Any) -> AIMessage:
        if "profile" not in str(prompt):
            return AIMessage(json.dumps({"summary": "Tea."}))
        item = {"kind": "preference", "subject": "drink", "value": "tea", "polarity": 1, "condition": None,
                "durable": True, "corrects": False, "source": 0, "quote": "I prefer tea"}  # fmt: skip
        empty: dict[str, Any] = {
            key: [] for key in ("facts", "entities", "topics", "action_items", "pending_questions")
        }
        return AIMessage(json.dumps({"summary": "Tea.", **empty, "closed": [], "profile": [item]}))

    for way in ("complete", "/summarize"):
        user = f"{user_id} {way}"
        with SupabaseMemory.from_conn_string(conn_string, user_id=user, model=says_by(model), config=ON) as memory:
            memory.conversation("talk").append([HumanMessage("I prefer tea, always."), AIMessage("Noted.")])
            if way == "complete":
                memory.conversation("talk").summaries.complete()
            else:
                agent = create_agent(says("?"), [], middleware=[SupabaseMemoryMiddleware(memory)])
                agent.invoke({"messages": [HumanMessage(way)]}, {"configurable": {"thread_id": "talk"}})
            assert [(each.value, each.state) for each in memory.profile.read()] == [("tea", "held")], way


def says_by(script: Any) -> Any:
    """A chat model that answers by a function of its prompt."""
    chat = says("")
    chat.script = script
    return chat


def test_a_moved_beginning_names_the_profile(person: SupabaseMemory) -> None:
    chat = says("Fine.")
    agent = create_agent(chat, [], middleware=[SupabaseMemoryMiddleware(person)])
    reports: list[Any] = []
    for number, text in enumerate(("Hello", "And?", "And now?")):
        given: Any = {"messages": [HumanMessage(text)]}
        settings: Any = {"configurable": {"thread_id": "talk"}}
        for event in agent.stream(given, settings, stream_mode="custom"):
            reports += [event["report"]] if isinstance(event, dict) and "report" in event else []
        if number == 1:
            person.profile.remember("I am vegan.")
    assert [each["moved"] for each in reports] == [None, None, "profile"]
