"""The context pack: one round trip over every transport, its contents, its rendering, and its report."""

from __future__ import annotations

import io
import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from langchain_supabase_memory import ContextBudget, MemoryConfig, SummaryPolicy, SupabaseMemory
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from tests.conftest import Caller
from tests.counting import recorded_calls
from tests.owners import conversation_of

BACKGROUND = SummaryPolicy(mode="background")


def turns(count: int, words: int = 10) -> list[BaseMessage]:
    return [
        each
        for n in range(count)
        for each in (HumanMessage(f"question {n} " + "word " * words), AIMessage(f"answer {n} " + "word " * words))
    ]


async def test_a_context_is_one_round_trip(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    await caller(conversation_of(caller.service, **where).append, turns(50))
    called = recorded_calls(caller.service)
    budget = ContextBudget(characters=2000)
    pack = await caller(conversation_of(caller.service, **where).context, "and now?", budget=budget)
    assert called == ["memory_context"]
    assert [message.text for message in pack.prompt][-1] == "and now?"
    assert len(pack.text()) <= 2000


async def test_history_and_current_message(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    history = turns(2)
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, history)
    current = HumanMessage("the third question")
    unstored = await caller(conversation.context, current)
    assert unstored.messages == history
    assert unstored.prompt == [*history, current]
    await caller(conversation.append, [current])  # it may be stored already: it is still not history
    stored = await caller(conversation.context, current)
    assert stored.messages == history
    assert stored.prompt == [*history, current]
    whole = await caller(conversation.context)
    assert whole.messages == [*history, current]


async def test_nothing_said_yet(caller: Caller, user_id: str) -> None:
    pack = await caller(caller.service.for_user(user_id).conversation("new").context, "hello")
    assert pack.messages == []
    assert [message.text for message in pack.prompt] == ["hello"]
    assert (pack.text(), pack.block(), pack.omitted) == ("", "", [])
    assert (await caller(caller.service.for_user(user_id).conversation("new").coverage)).ranges == []


async def test_the_summary_comes_first_and_the_rest_verbatim(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    history = turns(60, words=30)
    conversation = conversation_of(caller.service, **where)
    await caller(conversation.append, history)
    done = await caller(conversation.summaries.make, model=lambda _: "They asked and answered.")
    assert done.failed is None
    pack = await caller(conversation.context)
    assert "They asked and answered." in str(pack.messages[0].content)
    recent = pack.messages[1:]
    assert recent == history[-len(recent) :]
    assert pack.summary is not None
    assert pack.summary.to_sequence + 1 + len(recent) == len(history)
    assert pack.omitted == []
    assert (await caller(conversation.coverage)).complete


async def test_omitted_messages_are_named(caller: Caller, user_id: str) -> None:
    where = {"thread_id": "t", "user_id": user_id}
    await caller(conversation_of(caller.service, **where).append, turns(50))
    budget = ContextBudget(max_messages=20)
    pack = await caller(conversation_of(caller.service, **where).context, budget=budget, policy=BACKGROUND)
    assert "older messages omitted; showing last 20 messages" in pack.note
    assert [message.text.split(" word")[0] for message in pack.messages[1:3]] == ["question 40", "answer 40"]
    assert len(pack.messages) == 21
    assert pack.omitted[-1][:2][1] == 79
    assert pack.omitted[0][0] == 0
    coverage = await caller(conversation_of(caller.service, **where).coverage, budget=budget)
    assert [each.state for each in coverage.ranges] == ["omitted", "omitted", "verbatim"][-len(coverage.ranges) :]
    assert not coverage.complete


@pytest.mark.parametrize(
    "counter",
    [None, "approximate", count_tokens_approximately, len, lambda messages: 3 + 10 * len(list(messages))],
    ids=["ours", "approximate", "langchain's", "len", "not adding up"],
)
def test_any_token_counter(conn_string: str, user_id: str, counter: Any) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append(turns(100))
        budget = ContextBudget(tokens=30 if counter is len else 300, token_counter=counter)
        pack = memory.conversation("t").context("now?", budget=budget, policy=BACKGROUND)
        assert pack.report().used <= (30 if counter is len else 300)
        assert len(pack.messages) > 3
        if callable(counter):
            assert counter(pack.prompt) <= 300


def test_a_counter_that_raises_costs_nothing(conn_string: str, user_id: str, caplog: pytest.LogCaptureFixture) -> None:
    def raises(_: Any) -> int:
        raise ConnectionError("no vocabulary for canary-99")

    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append(turns(100))
        budget = ContextBudget(tokens=300, token_counter=raises)
        pack = memory.conversation("t").context("now?", budget=budget, policy=BACKGROUND)
    assert len(pack.messages) > 3
    assert "ConnectionError" in caplog.text
    assert "canary-99" not in caplog.text


def test_a_model_counts_as_well(conn_string: str, user_id: str) -> None:
    from tests.chat_models import ScriptedModel

    class Counts(ScriptedModel):
        def get_num_tokens_from_messages(self, messages: list[BaseMessage], tools: Any = None, **_: Any) -> int:
            return 50 * len(messages)

    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append(turns(50))
        budget = ContextBudget(tokens=500, token_counter=Counts(script=lambda _: "x"))
        assert len(memory.conversation("t").context(budget=budget, policy=BACKGROUND).messages) == 9


@pytest.mark.parametrize("recall", [None, "conversation"])
def test_the_beginning_stays_the_same_from_turn_to_turn(conn_string: str, user_id: str, recall: Any) -> None:
    """So that a provider's prompt cache holds: it moves only when the budget forces it, and then by a segment."""
    policy = SummaryPolicy(min_quality=None)  # the stand-in's summaries are poor, and would keep more verbatim
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=lambda _: "A summary.", config=MemoryConfig(policy=policy, recall=recall)
    ) as memory:
        before: list[BaseMessage] = []
        moved = recalled = 0
        for n in range(80):
            asked, answered = (
                HumanMessage(f"question {n} " + "word " * 40 + "?"),
                AIMessage(f"answer {n} " + "word " * 40),
            )
            prompt = memory.conversation("t").context(asked).prompt
            found = [each for each in prompt if "<recalled>" in each.text]
            recalled += len(found)
            prompt = [each for each in prompt if each not in found]  # what changes stands before the question
            moved += prompt[: len(before)] != before
            before = prompt
            memory.conversation("t").append([asked, answered])
        assert 2 <= moved <= (8 if recall is None else 18)
        assert (recalled > 40) is (recall is not None)


@pytest.mark.parametrize(
    ("most", "calls"), [*((most, False) for most in (3, 5, 6, 10, 20, 25)), (6, True), (10, True), (25, True)]
)
def test_a_segment_leaves_half_of_max_messages_verbatim(conn_string: str, user_id: str, most: int, calls: bool) -> None:
    turn = [HumanMessage("What is in the kiln now?"), AIMessage("A bowl, and it is glazed in a green of old.")]
    if calls:
        asks = AIMessage("", tool_calls=[{"name": "look", "args": {"at": "kiln"}, "id": "c"}])
        turn[1:1] = [asks, ToolMessage("a bowl", tool_call_id="c", name="look")]
    with SupabaseMemory.from_conn_string(
        conn_string,
        user_id=user_id,
        model=lambda _: "A kiln.",
        config=MemoryConfig(policy=SummaryPolicy(min_quality=None), recall=None),
    ) as memory:
        conversation, budget = memory.conversation("t"), ContextBudget(max_messages=most)
        summaries, left = 0, list[int]()
        for number in range(20 + most):
            pack = conversation.context(budget=budget)
            made = len(conversation.summaries.list())
            covered = -1 if pack.summary is None else pack.summary.to_sequence
            if made > summaries:
                left.append(conversation.count() - 1 - covered)
            assert len(pack.fitted.recent) <= most
            summaries = made
            conversation.append([each.model_copy(update={"id": f"{number}-{n}"}) for n, each in enumerate(turn)])
    assert len(left) >= 2
    assert min(left) >= most // 2


def test_the_text_forms(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=lambda _: "They counted.") as memory:
        memory.conversation("t").append(turns(80, words=25))
        memory.conversation("t").append(
            [
                HumanMessage("look\nit up"),
                AIMessage("", tool_calls=[{"name": "find", "args": {"q": "kiln"}, "id": "c"}]),
                ToolMessage("an oven", tool_call_id="c", name="find"),
                AIMessage("An oven."),
            ]
        )
        pack = memory.conversation("t").context()
    assert pack.summary is not None
    text = pack.text()
    assert text.startswith(
        f"Conversation so far\n\nSummary of messages 0 to {pack.summary.to_sequence}:\n  They counted.\n\nRecent"
    )
    assert text.endswith(
        'User: look\n  it up\nAssistant: [calls find({"q": "kiln"})]\nTool find: an oven\nAssistant: An oven.'
    )
    assert pack.block() == f"=== CONVERSATION CONTEXT ===\n{text}\n=== CONVERSATION CONTEXT ==="
    assert len(pack.block()) <= 12_000


def test_the_report_adds_up_and_holds_no_content(conn_string: str, user_id: str) -> None:
    from rich.console import Console

    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=lambda _: "canary-5 summary", config=MemoryConfig(recall=None)
    ) as memory:
        memory.conversation("t").append([HumanMessage("canary-5 " + "word " * 60) for _ in range(80)])
        current = HumanMessage("canary-5?")
        pack = memory.conversation("t").context(current)
        report = pack.report(previous_response_id=False)
        stored = memory.conversation("t").read(columns=["characters", "tokens"])
    assert report.full_messages == 81
    assert report.full_characters == sum(each.characters or 0 for each in stored) + len("canary-5?")
    assert report.full_tokens > sum(each.tokens or 0 for each in stored)
    assert report.saved_characters == report.full_characters - report.characters
    assert [section.name for section in report.sections] == ["summary", "recent", "current"]
    assert report.message_ids == [message.id for message in pack.prompt[1:]]
    assert report.covered == (0, pack.summary.to_sequence if pack.summary else None)
    assert report.used <= 12_000
    console = Console(file=io.StringIO(), width=140)
    console.print(report)
    assert isinstance(console.file, io.StringIO)
    shown = [str(report), report._repr_html_(), console.file.getvalue(), json.dumps(report.to_dict())]
    assert all("canary-5" not in each for each in shown)
    assert all("whole history" in each for each in shown[:3])
    assert "previous_response_id not used" in shown[0]


def test_messages_that_wait_are_part_of_the_history(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append(turns(1))
        memory._services.outbox.keep(memory._services.key("t"), [HumanMessage("not stored yet", id="w")])
        assert memory.conversation("t").context("next").messages[-1].text == "not stored yet"


def test_bad_input_says_what_to_do(conn_string: str) -> None:
    with pytest.raises(ConfigurationError, match="tokens or in characters"):
        ContextBudget(characters=1, tokens=1)
    for number in (0, -1, True, "x"):
        with pytest.raises(ConfigurationError, match="above 0"):
            ContextBudget(characters=number)  # type: ignore[arg-type]
    with pytest.raises(ConfigurationError, match="inline"):
        SummaryPolicy(mode="sometimes")  # type: ignore[arg-type]
    with SupabaseMemory.from_conn_string(conn_string, user_id="u") as memory:
        memory._services.model = None
        with pytest.raises(InvalidInputError, match="LangChain messages"):
            memory.conversation("t").context(3)  # type: ignore[arg-type]
        with pytest.raises(ConfigurationError, match="no model to write summaries"):
            memory.conversation("t").summaries.make()
        with pytest.raises(ConfigurationError, match="no model to write summaries"):
            memory.work.summarize_due()


@pytest.mark.parametrize("caller", ["direct-sync"], indirect=True)
async def test_images_count_in_the_default_budget_and_the_newest_are_shown(caller: Caller, user_id: str) -> None:
    conversation = caller.service.for_user(user_id).conversation("t")
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    for number in range(40):
        shot = HumanMessage([{"type": "text", "text": f"shot {number}"}, image])
        await caller(conversation.append, [shot, AIMessage("I see it.")])
    pack = await caller(conversation.context, "Which was the first?")
    shown = [message.content[0]["text"] for message in pack.prompt if isinstance(message.content, list)]
    assert 5 <= len(shown) <= 12
    assert shown == [f"shot {number}" for number in range(40 - len(shown), 40)]
    largest = await caller(conversation.context, "Which was the first?", budget=ContextBudget(characters=3_000))
    assert sum(isinstance(message.content, list) for message in largest.prompt) <= 3
    asked = HumanMessage([{"type": "text", "text": "And these?"}, *[image] * 20])
    whole = await caller(conversation.context, [asked])
    assert whole.prompt[-1].content == asked.content, "what is asked now is never cut"
