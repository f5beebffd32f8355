"""Why a past answer did not know something: where it was said, what became of it, and why it was not recalled."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, SupabaseMemory
from langchain_supabase_memory.context.expected_words import ExpectedWords
from langchain_supabase_memory.context.explanation import RECALL_REASONS
from langchain_supabase_memory.errors import InvalidInputError, NotFoundError
from langchain_supabase_memory.types import Conversation, Explanation
from tests.conftest import Caller
from tests.counting import recorded_calls
from tests.embedders import ScriptedEmbedder
from tests.memory_keywords import memory_keywords

BUDGET = ContextBudget(tokens=700)
SUMMARY = "They plan a dinner and speak of dishes, one after another."


def ask(conversation: Conversation, question: str, answer: str = "Noted.", **reading: Any) -> int:
    """A turn that is stored with its pack; the number of the answer."""
    message = HumanMessage(question)
    pack = conversation.context(message, **{"budget": BUDGET, **reading})
    return conversation.append([message, AIMessage(answer)], pack=pack).sequences[-1] or 0


def fill(conversation: Conversation, turns: int = 30) -> None:
    """Turns that push what was said before out of view."""
    for number in range(turns):
        ask(conversation, f"Tell me about dish number {number}.", "It is cooked slowly with onions. " * 12)


def memory_of(conn_string: str, user_id: str, **settings: Any) -> SupabaseMemory:
    return SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, **memory_keywords({"model": lambda _: SUMMARY, **settings})
    )


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with memory_of(conn_string, user_id) as opened:
        yield opened


def kinds(explanation: Explanation) -> list[str]:
    return [part.kind for part in explanation.parts]


# What became of it


def test_a_summary_that_leaves_it_out_and_recall_that_finds_no_word(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("dinner")
    ask(conversation, "Hello, I plan a dinner.")
    ask(conversation, "Please note that hazelnuts make me ill.")
    fill(conversation)
    conversation.index()
    answer = ask(conversation, "What could I bake on Sunday?", "A cake.")
    why = conversation.why(answer, "hazelnut")
    number = next(part.number for part in why.manifest.parts if part.name == "summary")
    assert kinds(why) == ["stored", "summary", "not_recalled", "budget"]
    assert not why.was_in_prompt
    assert why.reasons == ("no_words", "no_embedder")
    assert (why.parts[0].first, why.parts[1].segment) == (2, number)
    assert why.text == (
        f"Said in message 2. Summarized in segment {number}, which leaves it out: “{SUMMARY}” Not recalled: no word in"
        f" common with the question, no embedder. {700 - why.manifest.used:,} of 700 tokens unspent."
    )
    assert conversation.why(why.manifest, "dinner").was_in_prompt, "the summary says it"
    assert why.question == "What could I bake on Sunday?"
    assert "ill" not in repr(why)


def test_what_stood_there_word_for_word_or_was_recalled(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("dinner")
    ask(conversation, "Please note that hazelnuts make me ill.")
    near = ask(conversation, "What could I bake?")
    assert kinds(conversation.why(near, "hazelnuts")) == ["stored", "verbatim", "budget"]
    fill(conversation)
    conversation.index()
    recalled = conversation.why(ask(conversation, "Do hazelnuts make me ill?"), "hazelnuts make me ill")
    assert recalled.was_in_prompt
    assert "recalled" in kinds(recalled)
    assert not recalled.reasons


def test_what_was_said_later_in_the_turn_or_never(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("dinner")
    answer = ask(conversation, "What could I bake?", "A walnut cake.")
    ask(conversation, "Please note that hazelnuts make me ill.")
    assert kinds(conversation.why(answer, "hazelnut")) == ["later", "budget"]
    assert kinds(conversation.why(answer, "walnut cake")) == ["turn", "budget"]
    never = conversation.why(answer, "zeppelin")
    assert kinds(never) == ["never", "budget"]
    assert "nowhere" in never.text


def test_what_is_forgotten_is_counted_and_not_shown(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("dinner")
    conversation.append([HumanMessage("Hazelnuts make me ill.", id="h")])
    answer = ask(conversation, "What could I bake?")
    conversation.forget_message("h")
    why = conversation.why(answer, "hazelnut")
    assert kinds(why) == ["never", "removed", "budget"]
    assert "1 message of this conversation is not stored any more" in why.text
    assert "ill" not in why.text


def test_what_is_not_indexed_yet(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("dinner")
    ask(conversation, "Please note that hazelnuts make me ill.", recall=None)
    for number in range(30):
        ask(conversation, f"Dish {number}?", "It is cooked slowly with onions. " * 12, recall=None)
    assert conversation.why(ask(conversation, "And now?", recall=None), "hazelnut").reasons == ("off",)
    message = HumanMessage("And then?")
    pack = memory._services.run(_without_indexing(memory, conversation, message))
    answer = conversation.append([message, AIMessage("Well.")], pack=pack).sequences[-1] or 0
    assert conversation.why(answer, "hazelnut").reasons == ("not_indexed",)


def _without_indexing(memory: SupabaseMemory, conversation: Conversation, message: HumanMessage) -> Any:
    from langchain_supabase_memory.memory.context_defaults import context
    from langchain_supabase_memory.operations.recall.query import Filters

    reader = memory._services.read_only()
    return context(reader, conversation._key, message, budget=BUDGET, model=None, filters=Filters())


def test_other_conversations_and_why_they_were_out_of_reach(memory: SupabaseMemory) -> None:
    other = memory.conversation("trip")
    other.append([HumanMessage("My passport has the number X-4711."), AIMessage("Fine.")])
    other.index()
    private = memory.conversation("secret", private=True)
    private.append([HumanMessage("My locker has the code Q-9."), AIMessage("Fine.")])
    aside = memory.conversation("aside")
    aside.append([HumanMessage("My bicycle has the code B-77."), AIMessage("Fine.")])
    aside.opt_out(actor="ana")
    here = memory.conversation("dinner")
    answer = ask(here, "What is my passport's number?")
    why = here.why(answer, "passport X-4711")
    assert kinds(why) == ["elsewhere", "not_recalled", "budget"]
    assert why.reasons == ("other_conversation",)
    assert why.parts[0].key == other._key
    assert here.why(answer, "locker Q-9").reasons == ("private",)
    assert here.why(answer, "bicycle B-77").reasons == ("opted_out",)
    wide = ask(here, "And what is my passport's number, again?", recall="user")
    assert "recalled" in kinds(here.why(wide, "passport X-4711"))
    agent = ask(here, "And what is my passport's number, please?", recall="agent")
    coder = memory.conversation("code", agent_id="coder")
    coder.append([HumanMessage("My server is called quokka."), AIMessage("Fine.")])
    coder.index()
    later = ask(here, "And now?", recall="agent")
    assert "recalled" in kinds(here.why(agent, "passport X-4711"))
    assert here.why(later, "quokka").reasons == ("other_agent",)


def test_the_board_and_the_profile(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("dinner")
    conversation.board.add("fact", "Hazelnuts make Maya ill.", actor="ana", begin=True)
    old = ask(conversation, "What could I bake?", budget=ContextBudget(tokens=700, board=0.3))
    shown = conversation.why(old, "hazelnuts ill")
    assert kinds(shown) == ["board", "budget"]
    assert shown.was_in_prompt
    (item,) = conversation.board.read().items
    assert shown.parts[0].item == item.id
    memory.profile.remember("I drink oat milk", actor=memory.user_id)
    unseen = conversation.why(old, "oat milk")
    assert kinds(unseen) == ["profile", "budget"]
    assert not unseen.was_in_prompt


def test_an_embedder_finds_what_has_other_words(conn_string: str, user_id: str) -> None:
    def vector(text: str) -> list[float]:
        return [1.0, 0.0] if any(word in text for word in ("hazelnut", "allerg")) else [0.0, 1.0]

    embedder = ScriptedEmbedder(lambda texts: [vector(text.lower()) for text in texts], model="all-MiniLM-L6-v2")
    with memory_of(conn_string, user_id, embeddings=embedder) as memory:
        conversation = memory.conversation("dinner")
        ask(conversation, "Please note that hazelnuts make me ill.")
        fill(conversation)
        conversation.index()
        answer = ask(conversation, "What could I bake on Sunday?")
        why = conversation.why(answer, "food allergy")
        assert why.parts[0].first == 0, "found by meaning"
        assert why.reasons == ("no_words", "not_related")


def test_a_long_conversation_is_searched_in_few_calls(conn_string: str, user_id: str) -> None:
    with memory_of(conn_string, user_id) as memory:
        conversation = memory.conversation("long")
        for page in range(5):
            conversation.append([HumanMessage(f"Line {page * 500 + number}.") for number in range(500)])
        answer = ask(conversation, "What could I bake?")
        calls = recorded_calls(memory)
        why = conversation.why(answer, "zeppelin")
        assert why.is_complete
        assert len(calls) <= 10, calls
        calls.clear()
        conversation.why(why.manifest, "zeppelin")
        assert "memory_manifests" not in calls


def test_a_manifest_of_a_release_before_says_nothing_of_recall(memory: SupabaseMemory, sql: psycopg.Connection) -> None:
    conversation = memory.conversation("dinner")
    ask(conversation, "Please note that hazelnuts make me ill.")
    fill(conversation)
    conversation.index()
    answer = ask(conversation, "What could I bake?")
    (newest,) = conversation.manifests(limit=1).manifests
    assert newest.recall == "conversation"
    shorter = (
        "(select jsonb_agg(e order by n) from json_array_elements(pack -> 0) with ordinality h (e, n) where n <= 12)"
    )
    sql.execute(
        f"update memory.context_manifests set pack = jsonb_set(pack::jsonb, '{{0}}', {shorter})::json"
        " where user_id = %s and sequence = %s",
        [memory.user_id, answer],
    )
    why = conversation.why(answer, "hazelnut")
    assert why.manifest.recall is None
    assert why.reasons == ("no_words", "no_embedder")


# Doors and bad input


async def test_both_doors_say_the_same(caller: Caller, user_id: str) -> None:
    conversation = caller.service.for_user(user_id).conversation("t")
    await caller(conversation.append, [HumanMessage("I fire a kiln with E-47."), AIMessage("Which cone?")])
    asked = HumanMessage("Cone 6. What now?")
    pack = await caller(conversation.context, asked)
    await caller(conversation.append, [asked, AIMessage("Glaze it.")], pack=pack)
    why = await caller(conversation.why, 3, "kiln E-47")
    assert why.text.startswith("Said in message 0. In the prompt word for word.")
    with pytest.raises(NotFoundError):
        await caller(conversation.why, 1, "kiln")
    for wrong in ("", "  ", "x" * 1001, None):
        with pytest.raises(InvalidInputError):
            await caller(conversation.why, 3, wrong)


async def test_another_user_is_told_nothing(caller: Caller, user_id: str) -> None:
    conversation = caller.service.for_user(user_id).conversation("t")
    await caller(conversation.append, [HumanMessage("My code is X-4711."), AIMessage("Fine.")])
    other = caller.service.for_user(f"{user_id}-2").conversation("t")
    asked = HumanMessage("What now?")
    pack = await caller(other.context, asked)
    await caller(other.append, [asked, AIMessage("Glaze it.")], pack=pack)
    why = await caller(other.why, 1, "X-4711")
    assert kinds(why) == ["never", "budget"]


def test_hostile_words_are_only_words(memory: SupabaseMemory, caplog: pytest.LogCaptureFixture) -> None:
    conversation = memory.conversation("t")
    answer = ask(conversation, "</conversation_memory> ' or 1=1 -- %s \u202e secret")
    caplog.set_level(logging.DEBUG)
    for words in ("' or 1=1 --", "%s", "\\", "((", "\u202e secret", "\x00", "the of and", "腎臓", "😀"):
        assert conversation.why(answer, words).parts
    assert "secret" not in caplog.text


# Words


@pytest.mark.parametrize(
    ("expected", "text", "holds"),
    [
        ("hazelnut allergy", "I am allergic to hazelnuts.", True),
        ("hazelnut allergy", "I like hazelnuts.", False),
        ("E-47", "My kiln shows e-47 again", True),
        ("E-47", "It costs 47 euros", False),
        ("the kiln's code is E-47", "Kiln: E-47.", True),
        ("the kiln's code is E-47", "The kiln's code is E-48.", False),
        ("腎臓移植", "去年腎臓移植を受けた", True),
        ("the of", "of the", False),
        ("Straße", "STRASSE 5", True),
    ],
)
def test_words_are_found_in_other_forms(expected: str, text: str, holds: bool) -> None:
    assert ExpectedWords(expected).is_in(text) is holds


def test_every_reason_has_words() -> None:
    assert all(words and words[-1] != "." for words in RECALL_REASONS.values())
