"""Questions about days, in the asker's time zone, without an embedder: what was said then is asked for, whatever its words."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta
from zoneinfo import ZoneInfo

import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SupabaseMemory

ZONE = "Asia/Manila"
TODAY = datetime.now(ZoneInfo(ZONE)).date()
DAYS = 60
THINGS = [
    f"{color} {thing}"
    for color in ("old", "green", "broken", "new", "small", "red")
    for thing in ("bicycle", "lamp", "chair", "shelf", "door", "clock", "table", "kettle", "radio", "drawer")
]
MONDAY = TODAY - timedelta(days=TODAY.weekday())
LAST_SATURDAY = MONDAY - timedelta(days=2)


def days(first: date, last: date | None = None) -> set[date]:
    return {first + timedelta(days=number) for number in range(((last or first) - first).days + 1)}


def back(number: int) -> date:
    return TODAY - timedelta(days=number)


def written(day: date) -> str:
    return f"{day.day} {day:%B %Y}"


NEWEST, EARLIEST = {TODAY}, {back(DAYS - 1)}
QUESTIONS: list[tuple[str, set[date]]] = [
    ("What did I say yesterday?", days(back(1))),
    ("What have I repaired today?", days(TODAY)),
    ("What did I do three days ago?", days(back(3))),
    ("Which thing did I repair five days ago?", days(back(5))),
    ("What was I doing 12 days ago?", days(back(12))),
    ("And the day before yesterday?", days(back(2))),
    (f"What did I do on {written(back(20))}?", days(back(20))),
    (f"What happened on {back(33).isoformat()}?", days(back(33))),
    (f"What did we talk about on {back(40):%B} {back(40).day}?", days(back(40))),
    ("What did I do last week?", days(MONDAY - timedelta(days=7), MONDAY - timedelta(days=1))),
    ("What did I repair this week?", days(MONDAY, TODAY)),
    ("What did I tell you two weeks ago?", days(MONDAY - timedelta(days=14), MONDAY - timedelta(days=8))),
    ("Tell me what I did in the last three days.", days(back(3), TODAY)),
    ("What have I done in the past week?", days(back(7), TODAY)),
    ("What did I say in the past two weeks?", days(back(14), TODAY)),
    ("What did I do last weekend?", days(LAST_SATURDAY, LAST_SATURDAY + timedelta(days=1))),
    (f"What have I done since {written(back(4))}?", days(back(4), TODAY)),
    (f"What did I do between {written(back(25))} and {written(back(22))}?", days(back(25), back(22))),
    (f"What did I do from {back(31).isoformat()} to {back(29).isoformat()}?", days(back(31), back(29))),
    (f"What did I repair before {written(back(55))}?", days(back(DAYS), back(55))),
    ("What did I say most recently?", NEWEST),
    ("What is the latest thing that I repaired?", NEWEST),
    ("What was the first thing I told you?", EARLIEST),
    ("Was habe ich gestern gesagt?", days(back(1))),
    ("Was habe ich letzte Woche gemacht?", days(MONDAY - timedelta(days=7), MONDAY - timedelta(days=1))),
    ("¿Qué hice ayer?", days(back(1))),
    ("¿Qué hice la semana pasada?", days(MONDAY - timedelta(days=7), MONDAY - timedelta(days=1))),
    ("Qu'est-ce que j'ai fait hier ?", days(back(1))),
    ("Ano ang ginawa ko kahapon?", days(back(1))),
    ("O que eu fiz na semana passada?", days(MONDAY - timedelta(days=7), MONDAY - timedelta(days=1))),
]


@pytest.fixture(scope="module")
def memory(conn_string: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(conn_string, user_id="repairer") as memory:
        messages, times = [], []
        for number, thing in enumerate(THINGS):
            said = datetime.combine(back(DAYS - 1 - number), time(0, 1), ZoneInfo(ZONE))
            text = f"I repaired the {thing} with a friend, and we told nobody. It was said to be a hard thing to do."
            messages += [HumanMessage(text, id=f"u{number}"), AIMessage("Well done!", id=f"a{number}")]
            times += [said.astimezone(UTC), said.astimezone(UTC) + timedelta(seconds=20)]
        memory.conversation("t").append(messages, created_at=times)
        memory.conversation("t").index()
        yield memory


@pytest.mark.parametrize("exact_below", [2000, 0], ids=["all", "candidates"])
def test_thirty_questions_about_days(memory: SupabaseMemory, exact_below: int) -> None:
    wrong = []
    for question, wanted in QUESTIONS:
        found = memory.recall(question, time_zone=ZONE, limit=5, exact_below=exact_below).chunks
        told = [each.said_at.astimezone(ZoneInfo(ZONE)).date() for each in found if each.role == "user"]
        wanted = {day for day in wanted if day >= back(DAYS - 1)}
        best = told[: min(3, len(wanted))]
        if len(best) < min(3, len(wanted)) or not set(best) <= wanted:
            wrong.append((question, told))
    assert len(QUESTIONS) == 30
    assert len(wrong) <= 3, wrong
