"""The user's time zone: set for a memory, an agent, a run or a call."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import START, MessagesState, StateGraph

from langchain_supabase_memory import (
    ContextBudget,
    LoadContextNode,
    MemoryConfig,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseMemoryRetriever,
    SupabaseSummarizationNode,
)
from langchain_supabase_memory.agents.tools import search_conversation_history_tool
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from tests.chat_models import says
from tests.memory_keywords import memory_keywords

BUDGET = ContextBudget(characters=3000)
SAID = "The blue bowl cracked at cone six"
# 22:00 UTC: the next day in Manila and on Kiritimati, the same in Honolulu.
TIME = datetime.now(UTC).replace(hour=22, minute=0, second=0, microsecond=0) - timedelta(days=3)
ZONES = ["Asia/Manila", "Pacific/Kiritimati", "Pacific/Honolulu", "Asia/Kathmandu", "UTC"]


def filled(conn_string: str, user_id: str, **settings: Any) -> SupabaseMemory:
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, budget=BUDGET, **memory_keywords(settings)
    )
    conversation = memory.conversation("t")
    conversation.append([HumanMessage(SAID), AIMessage("A pity.")], created_at=TIME)
    for turn in range(30):
        later = TIME + timedelta(minutes=turn + 1)
        said = [HumanMessage(f"Then glaze {turn} ran down the shelf again. " * 4), AIMessage("I see. " * 20)]
        conversation.append(said, created_at=later)
    conversation.index()
    return memory


def day(text: str) -> str:
    """The date above the line of what was recalled."""
    before = text[: text.index(SAID)].splitlines()
    return [line for line in before if line.endswith(":") and line[:2] == "20"][-1].rstrip(":")


def here(zone: str | tzinfo) -> str:
    return TIME.astimezone(ZoneInfo(zone) if isinstance(zone, str) else zone).date().isoformat()


def of_agent(memory: SupabaseMemory, run: dict[str, Any], **options: Any) -> str:
    model = says("ok")
    agent = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory, **options)])
    asked: Any = {"messages": [HumanMessage("When did the blue bowl crack?")]}
    agent.invoke(asked, {"configurable": {"thread_id": "t", **run}})
    return "\n".join(str(message.text) for message in model.shown[-1])


class State(MessagesState):
    context: list[Any]


def _of_node(kind: Any) -> Callable[..., str]:
    def read(memory: SupabaseMemory, run: dict[str, Any], **options: Any) -> str:
        builder = StateGraph(State)
        builder.add_node("load", kind(memory, output_messages_key="context", **options))
        builder.add_edge(START, "load")
        asked: Any = {"messages": [HumanMessage("When did the blue bowl crack?")]}
        made: Any = builder.compile().invoke(asked, {"configurable": {"thread_id": "t", **run}})
        return "\n".join(str(message.text) for message in made["context"])

    return read


PROMPTS: dict[str, Callable[..., str]] = {
    "middleware": of_agent,
    "loading": _of_node(LoadContextNode),
    "summarizing": _of_node(SupabaseSummarizationNode),
}


@pytest.mark.parametrize("prompt", PROMPTS)
@pytest.mark.parametrize("zone", ZONES)
def test_what_an_agent_recalls_is_dated_in_the_users_time_zone(
    conn_string: str, user_id: str, prompt: str, zone: str
) -> None:
    with filled(conn_string, user_id) as memory:
        assert day(PROMPTS[prompt](memory, {})) == here(UTC)
        assert day(PROMPTS[prompt](memory, {}, time_zone=zone)) == here(zone)
        assert day(PROMPTS[prompt](memory, {"time_zone": zone})) == here(zone)
        # What was bound holds against what a run says.
        assert day(PROMPTS[prompt](memory, {"time_zone": "Asia/Manila"}, time_zone=zone)) == here(zone)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, budget=BUDGET, config=MemoryConfig(time_zone=zone)
    ) as memory:
        assert day(PROMPTS[prompt](memory, {})) == here(zone)
        assert day(PROMPTS[prompt](memory, {"time_zone": "Asia/Manila"})) == here("Asia/Manila")


def test_a_memorys_time_zone_holds_for_every_call(conn_string: str, user_id: str) -> None:
    zone = "Pacific/Kiritimati"
    local = here(zone)
    asked = f"What was on {datetime.fromisoformat(local):%d %B %Y}?"
    with filled(conn_string, user_id, time_zone=zone) as memory:
        conversation = memory.conversation("t")
        assert day(conversation.context(HumanMessage("When did the blue bowl crack?")).text()) == local
        assert day(conversation.context(HumanMessage("Which bowl?"), query="blue bowl crack").text()) == local
        tool = search_conversation_history_tool(memory, thread_id="t")
        assert local in tool.invoke({"query": "the blue bowl"})
        for recall in (conversation.recall, memory.recall):
            # By the date alone: a day that began in this zone.
            (best, *_) = recall(asked, limit=3).chunks
            assert best.said_at.astimezone(ZoneInfo(zone)).date().isoformat() == local
        retriever = SupabaseMemoryRetriever(memory=memory, thread_id="t")
        assert retriever.invoke(asked)


def test_yesterday_and_today_are_the_memorys_days(conn_string: str, user_id: str) -> None:
    # Somewhere it is another day than in UTC, at whatever hour this runs.
    now = datetime.now(UTC)
    zone = "Pacific/Kiritimati" if now.hour >= 10 else "Pacific/Pago_Pago"
    midnight = now.astimezone(ZoneInfo(zone)).replace(hour=0, minute=0, second=0, microsecond=0)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, config=MemoryConfig(time_zone=zone)
    ) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("Late tea with Ana")], created_at=midnight - timedelta(minutes=5))
        conversation.append([HumanMessage("Early tea with Ben")], created_at=midnight + timedelta(seconds=1))
        conversation.index()
        assert [each.content for each in conversation.recall("", time_range="today").chunks] == ["Early tea with Ben"]
        assert conversation.recall("Who was at tea yesterday?").chunks[0].content == "Late tea with Ana"
        other = conversation.recall("", time_range="today", time_zone="UTC").chunks
        assert {each.content for each in other} != {"Early tea with Ben"} or now.hour < 10


def test_days_are_right_where_clocks_change(conn_string: str, user_id: str) -> None:
    """On 29 March 2026 a day in Berlin had 23 hours, on 25 October 25."""
    berlin = ZoneInfo("Europe/Berlin")
    times = [
        datetime(2026, 3, 29, 0, 30, tzinfo=berlin),
        datetime(2026, 3, 29, 23, 30, tzinfo=berlin),
        datetime(2026, 10, 25, 0, 30, tzinfo=berlin),
        datetime(2026, 10, 25, 23, 30, tzinfo=berlin),
    ]
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, config=MemoryConfig(time_zone=berlin)
    ) as memory:
        conversation = memory.conversation("t")
        for place, time in enumerate(times):
            conversation.append([HumanMessage(f"Kiln opened, firing number {place}")], created_at=time)
        conversation.index()
        for asked, found in (("29 March 2026", {0, 1}), ("25 October 2026", {2, 3})):
            best = conversation.recall(f"Which firing was on {asked}?", limit=2).chunks
            assert {each.from_sequence for each in best} == found


def test_the_boards_writer_reads_when_it_was_said_in_the_time_zone(conn_string: str, user_id: str) -> None:
    model = says("none")
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=model, config=MemoryConfig(time_zone="Asia/Manila")
    ) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("I fire the kiln tomorrow.")], created_at=TIME)
        conversation.board.revise()
    assert f'at="{here("Asia/Manila")}T06:00"' in str(model.shown[0][-1].text)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "Manila", "../etc/passwd", 8, b"UTC"])
def test_what_is_no_time_zone_is_refused_where_it_is_said(conn_string: str, user_id: str, zone: Any) -> None:
    with pytest.raises(ConfigurationError, match="Asia/Manila"):
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(time_zone=zone))
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        for make in (SupabaseMemoryMiddleware, LoadContextNode, SupabaseSummarizationNode):
            with pytest.raises(ConfigurationError, match="Asia/Manila"):
                make(memory, time_zone=zone)
        if zone:  # of what a run says, what is empty is none
            with pytest.raises(InvalidInputError, match="Asia/Manila"):
                of_agent(memory, {"time_zone": zone})
