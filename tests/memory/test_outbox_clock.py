"""The outbox when the wall clock is set while messages wait: nothing gets a wrong time, and nothing is dropped."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, tzinfo

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import Retention, SupabaseMemory
from langchain_supabase_memory.memory import outbox
from langchain_supabase_memory.memory.outbox import Outbox
from langchain_supabase_memory.values import ConversationKey


class SetClock(datetime):
    """The wall clock, wrong by `ahead`."""

    ahead = timedelta(0)

    @classmethod
    def now(cls, tz: tzinfo | None = None) -> datetime:  # type: ignore[override]
        return datetime.now(tz) + cls.ahead


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> type[SetClock]:
    monkeypatch.setattr(outbox, "datetime", SetClock)
    monkeypatch.setattr(SetClock, "ahead", timedelta(0))
    return SetClock


@pytest.mark.parametrize("ahead", [timedelta(days=-400), timedelta(hours=-2), timedelta(hours=2)])
def test_what_waited_under_a_wrong_clock_is_stored_with_the_right_time(
    memory: SupabaseMemory, clock: type[SetClock], ahead: timedelta
) -> None:
    clock.ahead = ahead
    memory._services.outbox.keep(memory._services.key("t"), [HumanMessage("Hello.", id="waited")])
    clock.ahead = timedelta(0)
    assert memory.flush() == 0
    conversation = memory.conversation("t")
    conversation.append([HumanMessage("And now?")], retention=Retention(max_age=timedelta(hours=1)))
    stored = conversation.read(columns=["created_at", "payload"])
    assert [each.message.text for each in stored] == ["Hello.", "And now?"]
    assert all(abs(datetime.now(UTC) - each.created_at) < timedelta(minutes=5) for each in stored if each.created_at)
    assert stored[0].created_at <= stored[1].created_at  # type: ignore[operator]


def test_a_clock_that_is_set_forward_drops_nothing_that_waits_for_its_user(clock: type[SetClock]) -> None:
    every, key = Outbox(10), ConversationKey("t", None, "default")
    every.of_user("maya").keep(key, [HumanMessage("Hello.", id="a")])
    clock.ahead = timedelta(days=30)
    every.of_user("ben").keep(key, [HumanMessage("Hello.", id="a")])
    assert every.total == 2
