"""Manifests: a prompt's parts are stored with its answer as numbers, for its owner only, and deleted with the text."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, get_args

import psycopg
import pytest
from hypothesis import given as drawn
from hypothesis import settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, MemoryConfig, Retention, SupabaseMemory
from langchain_supabase_memory.effects import Call
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.operations.manifests import encoding
from langchain_supabase_memory.operations.manifests.manifest import manifest
from langchain_supabase_memory.operations.manifests.parts import PART_REASONS, PROMPT_PARTS, PartName, Reason
from langchain_supabase_memory.settings import ManifestPolicy
from tests.conftest import Caller
from tests.each_case import each_case
from tests.services.data_api import token, verified
from tools.contract import every

SECRET = "canaryxyzzy"


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    budget = ContextBudget(characters=1500)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, budget=budget, model=lambda _: "They spoke of kilns and of clay."
    ) as memory:
        yield memory


def talk(memory: SupabaseMemory, turns: int = 12, thread: str = "t") -> Any:
    """A conversation of some turns, each stored with its pack."""
    told = memory.conversation(thread)
    for turn in range(turns):
        asked = HumanMessage(f"{SECRET} of kiln {turn}, {'clay ' * 20}?", id=f"q{turn}")
        pack = told.context(asked)
        told.append([asked, AIMessage(f"Glaze {turn}. {'Fire it. ' * 10}", id=f"a{turn}")], pack=pack)
    return told


def rows(memory: SupabaseMemory, conn_string: str) -> list[Any]:
    """What the table holds of the memory's user."""
    with psycopg.connect(conn_string) as connection:
        found = connection.execute(
            "select pack, sequence, expires_at - made_at from memory.context_manifests where user_id = %s"
            " order by sequence",
            [memory.user_id],
        )
        return found.fetchall()


def stored_with(memory: SupabaseMemory, shown: Any, message_id: str = "m") -> Any:
    """What `memory_append` answers to a message with a manifest that anybody may have written."""
    payload = [{"id": message_id, "role": "user", "content": "Hello"}]
    arguments = {"p_thread_id": "t", "p_user_id": memory.user_id, "p_messages": payload, "p_manifest": shown}
    return memory._services.transport.perform(Call("memory_append", arguments))


# What is kept


async def test_an_answer_keeps_what_stood_in_its_prompt(caller: Caller, user_id: str) -> None:
    told = caller.service.for_user(user_id).conversation("t")
    await caller(told.append, [HumanMessage("I fire a kiln."), AIMessage("Which cone?")])
    asked = HumanMessage("Cone 6. What now?")
    await caller(told.append, [asked])
    pack = await caller(told.context, asked)
    usage: Any = {"input_tokens": 90, "output_tokens": 7, "total_tokens": 97, "input_token_details": {"cache_read": 64}}
    await caller(told.append, [AIMessage("Glaze it.", usage_metadata=usage)], pack=pack)
    (kept,) = (await caller(told.manifests)).manifests
    assert (kept.from_sequence, kept.to_sequence, kept.turn) == (3, 3, 2)
    assert kept.parts == pack.manifest.parts
    assert [(part.name, part.reason, part.first, part.last) for part in kept.parts] == [
        ("recent", "all", 0, 1),
        ("current", "asked", 2, 2),
    ]
    report = pack.report()
    assert (kept.characters, kept.tokens) == (report.characters, report.tokens)
    assert (kept.budget, kept.unit, kept.used, kept.entry_point) == (12_000, "characters", report.used, "api")
    assert (kept.full_messages, kept.saved_characters) == (report.full_messages, report.saved_characters)
    assert kept.usage is not None
    assert (kept.usage.input_tokens, kept.usage.output_tokens, kept.usage.cached_tokens) == (90, 7, 64)
    assert kept.made_at is not None
    assert (kept.gone, kept.changed, kept.resummarized) == ((), (), False)
    assert json.dumps(kept.to_dict())


def test_a_pack_with_everything_says_why_each_part_is_there(memory: SupabaseMemory) -> None:
    told = talk(memory)
    item = told.board.add("fact", "The kiln is blue.", actor="ana")
    pack = told.context("Which kiln was it?", budget=ContextBudget(characters=2500, max_messages=2, board=0.4))
    shown = pack.manifest
    parts = {part.name: part for part in shown.parts}
    assert set(parts) == {"summary", "recent", "board", "recalled", "current"}
    assert (parts["summary"].reason, parts["summary"].number) == ("older", pack.summary.number)
    assert parts["recalled"].reason == "words"
    assert len(shown.passages) == len(pack.recalled) > 0
    first, chunk = shown.passages[0], pack.recalled[0]
    assert (first.first, first.last, first.part) == (chunk.from_sequence, chunk.to_sequence, chunk.part)
    assert first.score_parts == pytest.approx(chunk.score_parts, abs=0.0051)
    assert shown.items == (item[:8],)
    assert "summary" in str(shown)


def test_what_is_left_out_is_named_with_its_reason(memory: SupabaseMemory) -> None:
    told = memory.conversation("t")
    for turn in range(9):
        told.append([HumanMessage(f"{turn} {'tea ' * 60}"), AIMessage("Yes.")])
    pack = told.context("And now?", model=None, recall=None)
    assert pack.omitted
    assert [(first, last) for first, last, _ in pack.manifest.omitted] == [(each[0], each[1]) for each in pack.omitted]
    assert {why for _, _, why in pack.manifest.omitted} <= {"budget", "cut"}
    assert next(part.reason for part in pack.manifest.parts if part.name == "recent") == "newest"


def test_the_newest_come_first_page_by_page(memory: SupabaseMemory) -> None:
    told = talk(memory)
    first = told.manifests(limit=5)
    second = told.manifests(limit=5, after=first.after)
    third = told.manifests(limit=5, after=second.after)
    numbers = [each.to_sequence for page in (first, second, third) for each in page.manifests]
    assert numbers == list(range(23, 0, -2))
    assert third.after is None
    (one,) = told.manifests(from_sequence=7, to_sequence=7).manifests
    assert (one.turn, one.to_sequence) == (6, 7)
    assert memory.conversation("nowhere").manifests().manifests == []


def test_what_differs_between_two_turns(memory: SupabaseMemory) -> None:
    told = talk(memory)
    later, earlier = told.manifests(limit=2).manifests
    differs = later.since(earlier)
    assert differs
    changed = {part.name: part for part in differs.parts}
    assert changed["recent"].before == next(part for part in earlier.parts if part.name == "recent")
    assert not later.since(later)
    assert str(later.since(later)) == "nothing"
    told.append([HumanMessage("Enough.")])
    small = told.context("Now?", recall=None, budget=ContextBudget(characters=400)).manifest
    assert "recalled: went" in str(small.since(later))
    assert "recalled: came" in str(later.since(small))
    assert later.since(small).budget == 1100
    assert small.since(told.context("Now?", budget=ContextBudget(tokens=400)).manifest).budget is None


def test_a_call_that_is_repeated_keeps_one(memory: SupabaseMemory, conn_string: str) -> None:
    told = memory.conversation("t")
    pack = told.context("Hello")
    answer = [HumanMessage("Hello", id="q"), AIMessage("Hello, Maya", id="a")]
    for _ in range(3):
        told.append(answer, pack=pack)
    told.add_turn("And?", "Yes.", pack=told.context("And?"))
    assert [sequence for _, sequence, _ in rows(memory, conn_string)] == [1, 3]


def test_the_pack_of_another_conversation_is_refused(memory: SupabaseMemory) -> None:
    pack = memory.conversation("other").context("Hello")
    given: Any = "pack"
    for wrong in (pack, given):
        with pytest.raises(InvalidInputError, match="Pass what context"):
            memory.conversation("t").append([AIMessage("Hi")], pack=wrong)
    assert memory.conversation("t").count() == 0


@each_case("given", [{"limit": 0}, {"limit": 201}, {"limit": True}, {"after": 3}, {"from_sequence": -1}])
def test_a_page_is_asked_for_in_numbers(given: dict[str, Any]) -> None:
    """It is met before anybody is asked: no server is at this address."""
    memory = SupabaseMemory.from_conn_string("postgresql://nobody@127.0.0.1:1/none", user_id="u")
    with pytest.raises(InvalidInputError):
        memory.conversation("t").manifests(**given)


def test_a_place_that_is_none_is_refused(memory: SupabaseMemory) -> None:
    for after in ("nowhere", "1/2", "x/00000000-0000-0000-0000-000000000000"):
        with pytest.raises(InvalidInputError):
            memory.conversation("t").manifests(after=after)


# How many, how long


def test_a_share_is_drawn_by_the_answer(conn_string: str, user_id: str) -> None:
    counts = []
    for share in (0, 0.5, 1):
        policy = ManifestPolicy(share=share)
        with SupabaseMemory.from_conn_string(
            conn_string, user_id=user_id, config=MemoryConfig(manifests=policy)
        ) as memory:
            told = talk(memory, 20, f"share {share}")
            counts.append({each.to_sequence for each in told.manifests(limit=200).manifests})
            memory.conversation(f"share {share}").forget()
            again = talk(memory, 20, f"share {share}")
            assert {each.to_sequence for each in again.manifests(limit=200).manifests} == counts[-1]
    assert not counts[0]
    assert 0 < len(counts[1]) < 20
    assert len(counts[2]) == 20


@each_case("policy", [{"share": 2}, {"share": -1}, {"share": "all"}, {"max_age": timedelta(0)}])
def test_a_policy_that_is_none_is_refused(policy: Any) -> None:
    with pytest.raises(ConfigurationError):
        ManifestPolicy(**policy)


@pytest.mark.parametrize("age", [timedelta(days=3), None])
def test_an_age_is_kept_with_each(conn_string: str, user_id: str, age: timedelta | None) -> None:
    policy = ManifestPolicy(max_age=age)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(manifests=policy)) as memory:
        talk(memory, 1)
        assert rows(memory, conn_string)[0][2] == age


@pytest.mark.parametrize(
    ("shown", "age"),
    [([[0]], 30), ([[0, 0, 0, 0, 0, 0, 0, -1]], 30), ([[0, 0, 0, 0, 0, 0, 0, 0]], None),
     ([[0, 0, 0, 0, 0, 0, 0, 86_400]], 1), ([[0, 0, 0, 0, 0, 0, 0, 10**14]], 36_500)],
)  # fmt: skip
def test_one_that_says_no_age_goes_after_30_days(
    memory: SupabaseMemory, conn_string: str, shown: Any, age: int | None
) -> None:
    stored_with(memory, shown)
    assert rows(memory, conn_string)[0][2] == (None if age is None else timedelta(days=age))


def test_what_is_too_old_is_not_listed_and_is_removed(memory: SupabaseMemory, conn_string: str) -> None:
    told = talk(memory, 4)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        old = "update memory.context_manifests set expires_at = now() - interval '1 s' where user_id = %s"
        connection.execute(f"{old} and sequence < 4", [memory.user_id])
    assert [each.to_sequence for each in told.manifests().manifests] == [7, 5]
    memory.forget_expired()
    assert [sequence for _, sequence, _ in rows(memory, conn_string)] == [5, 7]


def test_many_that_are_too_old_go_in_steps_and_of_whom_it_is_asked(memory: SupabaseMemory, conn_string: str) -> None:
    for agent in ("one", "two"):
        memory.conversation("t", agent_id=agent).append([HumanMessage("Hi.")])
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "insert into memory.context_manifests (user_id, conversation_id, sequence, from_sequence, expires_at, pack)"
            " select c.user_id, c.id, n, n, now() - interval '1 s', '[[0]]'"
            " from memory.conversations c, generate_series(1, 6000) n where c.user_id = %s",
            [memory.user_id],
        )
        asked = "select public.memory_forget_expired(p_user_id => %s, p_agent_id => 'two') -> 'after'"
        afters = [connection.execute(asked, [memory.user_id]).fetchall()[0][0] for _ in range(2)]
        assert [after is None for after in afters] == [False, True], "5,000 of 6,000 go with the first call"
        left = "select distinct c.agent_id from memory.context_manifests x join memory.conversations c"
        left += " on c.user_id = x.user_id and c.id = x.conversation_id where x.user_id = %s"
        assert connection.execute(left.encode(), [memory.user_id]).fetchall() == [("one",)]
        memory.forget_expired()
        assert connection.execute(left.encode(), [memory.user_id]).fetchall() == []


def test_what_nobody_cleans_up_does_not_grow(memory: SupabaseMemory, conn_string: str) -> None:
    told = talk(memory, 20)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        old = "update memory.context_manifests set expires_at = now() - interval '1 s' where user_id = %s"
        connection.execute(old, [memory.user_id])
    for turn in range(14):
        told.append([HumanMessage(f"{turn}"), AIMessage("Yes.")], pack=told.context(f"{turn}", recall=None, model=None))
    assert min(sequence for _, sequence, _ in rows(memory, conn_string)) > 40


# Never at the cost of an answer


@pytest.fixture
def broken(monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on no manifest can be made of a pack."""

    def fails(_: object) -> int:
        raise ZeroDivisionError(SECRET)

    monkeypatch.setattr("langchain_supabase_memory.context.manifest._turn", fails)


@pytest.mark.usefixtures("broken")
def test_a_manifest_that_cannot_be_made_costs_no_answer(
    memory: SupabaseMemory, caplog: pytest.LogCaptureFixture
) -> None:
    told = talk(memory, 1)
    told.add_turn("And?", "Yes.", pack=told.context("And?"))
    assert told.count() == 4
    assert told.manifests().manifests == []
    assert caplog.text.count("(ZeroDivisionError)") == 2
    assert SECRET not in caplog.text
    with pytest.raises(InvalidInputError, match="of another conversation"):
        told.append([AIMessage("Hi")], pack=memory.conversation("other").context("Hello"))


@pytest.mark.usefixtures("broken")
def test_with_a_share_of_none_nothing_is_tried(
    conn_string: str, user_id: str, caplog: pytest.LogCaptureFixture
) -> None:
    policy = ManifestPolicy(share=0)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(manifests=policy)) as memory:
        assert talk(memory, 1).count() == 2
        with pytest.raises(InvalidInputError, match="must be a ContextPack"):
            memory.conversation("t").append([AIMessage("Hi")], pack=object())  # type: ignore[arg-type]
    assert caplog.text == ""


def test_usage_that_cannot_be_read_costs_no_answer(memory: SupabaseMemory, caplog: pytest.LogCaptureFixture) -> None:
    told = memory.conversation("t")
    usage: Any = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
    answer = AIMessage("Yes.", usage_metadata=usage)
    usage["input_token_details"] = [SECRET]
    answer.usage_metadata = usage
    told.append([HumanMessage("Hello"), answer], pack=told.context("Hello"))
    assert told.count() == 2
    assert told.manifests().manifests == []
    assert "(AttributeError)" in caplog.text
    assert SECRET not in caplog.text


@each_case("score", [float("nan"), float("inf"), -float("inf")])
def test_a_score_that_is_no_number_counts_as_none(score: float) -> None:
    assert encoding.hundredths({"words": 0.25, "meaning": score, "rerank": 0.5}) == [25, 0, 0, 0, 0, 0, 0, 0, 0, 0, 50]


# Erased with its messages


def test_a_message_that_is_forgotten_takes_the_manifests_of_its_turn(memory: SupabaseMemory) -> None:
    told = talk(memory, 5)
    told.forget_message("q1")
    told.forget_message("a3")
    listed = told.manifests().manifests
    assert [each.to_sequence for each in listed] == [9, 5, 1]
    named = [part for each in listed for part in each.parts if part.name == "recent" and part.first is not None]
    assert named
    assert all((2, 2) in each.gone for each in listed if any((p.first or 9) <= 2 <= (p.last or 0) for p in each.parts))


def test_what_was_edited_or_summarized_anew_is_said(memory: SupabaseMemory) -> None:
    told = talk(memory)
    asked = HumanMessage("Which kiln was it?")
    told.append([asked, AIMessage("The blue one.")], pack=told.context(asked, recall=None))
    newest = told.manifests(limit=1).manifests[0]
    recent = next(part for part in newest.parts if part.name == "recent")
    assert recent.first is not None
    question = recent.first + recent.first % 2
    told.append([HumanMessage("Something else.", id=f"q{question // 2}")])
    (now,) = told.manifests(limit=1).manifests
    assert any(first <= question <= last for first, last in now.changed)
    assert now.gone == ()
    assert not newest.resummarized
    told.summaries.regenerate(actor="ana")
    assert told.manifests(limit=1).manifests[0].resummarized


def test_items_of_the_board_that_were_edited_or_are_gone_are_said(memory: SupabaseMemory) -> None:
    told, roomy = memory.conversation("t"), ContextBudget(characters=4000, board=0.4)
    told.append([HumanMessage("I have four kilns.")])
    items = [told.board.add("fact", f"The kiln number {n} is blue.", actor="ana") for n in range(4)]
    asked = HumanMessage("Which kiln?")
    told.append([asked, AIMessage("The blue one.")], pack=told.context(asked, budget=roomy))
    (kept,) = told.manifests().manifests
    assert {*kept.items} == {each[:8] for each in items}
    assert kept.changed_items == ()
    told.board.edit(items[0], text="The kiln is red.", actor="ana")
    told.board.delete(items[1], actor="ana")
    told.board.pin(items[2], actor="ana")
    (now,) = told.manifests().manifests
    assert {*now.changed_items} == {items[0][:8], items[1][:8]}
    asked = HumanMessage("And now?")
    told.append([asked, AIMessage("The red one.")], pack=told.context(asked, budget=roomy))
    newest, older = told.manifests().manifests
    assert (newest.changed_items, {*older.changed_items}) == ((), {items[0][:8], items[1][:8]})


def test_retention_takes_manifests_with_their_answers(memory: SupabaseMemory, conn_string: str) -> None:
    told = talk(memory, 6)
    keeps = Retention(max_turns=2)
    with SupabaseMemory.from_conn_string(conn_string, user_id=memory.user_id, retention=keeps) as limited:
        before = [each.to_sequence for each in limited.conversation("t").manifests().manifests]
        assert before == [11, 9]
        assert all(each.gone for each in limited.conversation("t").manifests().manifests)
        limited.forget_expired()
    assert [sequence for _, sequence, _ in rows(memory, conn_string)] == [9, 11]
    told.forget()
    assert rows(memory, conn_string) == []


def test_of_what_is_not_to_be_remembered_none_is_kept(memory: SupabaseMemory, conn_string: str) -> None:
    told = talk(memory, 3)
    told.opt_out(actor="maya")
    assert rows(memory, conn_string) == []
    told.append([HumanMessage("Still here."), AIMessage("Yes.")], pack=told.context("Still here."))
    assert rows(memory, conn_string) == []
    told.opt_in(actor="maya")
    told.append([HumanMessage("Back."), AIMessage("Good.")], pack=told.context("Back."))
    assert len(rows(memory, conn_string)) == 3 + 1, "it was undone within a minute"


# Numbers alone


def test_no_word_is_in_it(memory: SupabaseMemory, conn_string: str) -> None:
    talk(memory, 6)
    found = rows(memory, conn_string)
    assert len(found) == 6
    assert all(isinstance(each, int) for pack, _, _ in found for row in pack for each in row)


HOSTILE: list[Any] = [
    [SECRET], [[SECRET]], [[0, SECRET]], {"entry_point": SECRET}, [{"a": 1}], [[{"a": 1}]], [[[1]]], [[1.5]], [[True]],
    [[None]], [None], [], [[]], [[], [1]], None, [[10**16]], [[-(10**17)]], [[1e300]], [[0]] * 300, [[1] * 600],
    [[SECRET] * 100_000],
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(HOSTILE)))
def test_what_is_no_manifest_is_left_out_and_the_message_stays(
    memory: SupabaseMemory, conn_string: str, place: int
) -> None:
    assert stored_with(memory, HOSTILE[place])["appended"] == 1
    assert rows(memory, conn_string) == []
    assert memory.conversation("t").count() == 1


@pytest.mark.parametrize("text", ['"canaryxyzzy"', "7", '[["\\u0000"]]', "[[1e999999]]", "[[1]\n]", "[[1, 2], [3]]"])
def test_what_json_takes_and_postgres_does_not_costs_no_message(
    memory: SupabaseMemory, conn_string: str, text: str
) -> None:
    message = '[{"id": "m", "role": "user", "content": "Hello"}]'
    with psycopg.connect(conn_string, autocommit=True) as connection:
        call = "select public.memory_append('t', %s::json, %s, p_manifest => %s::json)"
        connection.execute(call, [message, memory.user_id, text])
    assert len(rows(memory, conn_string)) == (text == "[[1, 2], [3]]")
    assert memory.conversation("t").count() == 1


@pytest.mark.parametrize("shown", [[[0]], [[9, 9]], [[0, 99, -5, 3], [1, 77], [3], [6]], [[3, 5, 2], [1, 2, 3, 4]]])
def test_what_is_short_or_of_a_later_release_is_read_as_far_as_it_goes(memory: SupabaseMemory, shown: Any) -> None:
    stored_with(memory, shown)
    (kept,) = memory.conversation("t").manifests().manifests
    assert isinstance(kept.parts, tuple)
    assert str(kept)
    assert json.dumps(kept.to_dict())


def test_a_user_reads_and_writes_their_own_and_no_words(caller: Caller, conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        talk(memory, 2)
    claims = json.dumps(verified(token(user_id=user_id)))
    other = json.dumps(verified(token(user_id=f"{user_id}-other")))
    count = "select count(*) from memory.context_manifests where user_id = %s"
    write = "update memory.context_manifests set pack = %s where user_id = %s"
    for subject, seen in ((claims, 2), (other, 0)):
        with psycopg.connect(conn_string, autocommit=True) as connection, connection.transaction():
            connection.execute(
                "select set_config('request.jwt.claims', %s, true), set_config('role', 'authenticated', true)",
                [subject],
            )
            row = connection.execute(count, [user_id]).fetchone()
            assert row is not None
            assert row[0] == seen
            assert connection.execute(write, ["[[0]]", user_id]).rowcount == seen
            for words in (f'[["{SECRET}"]]', f'{{"a": "{SECRET}"}}', "[[0]" + ",[0]" * 300 + "]"):
                if seen:
                    with pytest.raises(psycopg.errors.CheckViolation), connection.transaction():
                        connection.execute(write, [words, user_id])


async def test_nobody_elses_are_listed(caller: Caller, user_id: str) -> None:
    mine = caller.as_token(token(user_id=user_id))
    pack = await caller(mine.conversation("t").context, "Hello")
    await caller(mine.conversation("t").append, [HumanMessage("Hello"), AIMessage("Hi")], pack=pack)
    assert len((await caller(mine.conversation("t").manifests)).manifests) == 1
    theirs = caller.as_token(token(user_id=f"{user_id}-other"))
    assert (await caller(theirs.conversation("t").manifests)).manifests == []
    named = theirs.for_user(user_id).conversation("t")
    assert (await caller(named.manifests)).manifests == []


def test_the_comment_of_the_function_says_every_code() -> None:
    """Another language reads and writes them by it."""
    (pack,) = (each for each in every()["memory_manifests"].contract.keys if each.path == "manifests[].pack")
    for name, codes_of in (
        ("entry points", encoding.ENTRY_POINTS), ("units", encoding.UNITS), ("parts", encoding.PARTS), ("reasons", encoding.REASONS),
        ("a score's parts", encoding.SCORES),
    ):  # fmt: skip
        assert f"{name} ({', '.join(codes_of)})" in pack.meaning
    flags = {int(bit): what for bit, what in re.findall(r"(\d+) \(([^)]*)\)", pack.meaning.partition("Flags are")[2])}
    named: dict[int, str] = {1 << bit: name for bit, name in enumerate(encoding.FAILURES)}
    named |= {
        encoding.OPTED_OUT: "opted out",
        encoding.CUT: f"cut to {encoding.LONGEST} bytes",
        encoding.MORE: "more items",
    }
    assert flags.keys() == named.keys()
    assert all(name in flags[bit] for bit, name in named.items())
    kinds = [int(kind) for kind in re.findall(r"\[(\d+), ", pack.meaning)]
    assert kinds == [
        encoding.HEAD,
        encoding.PART,
        encoding.ITEMS,
        encoding.PASSAGE,
        encoding.ELSEWHERE,
        encoding.OMITTED,
        encoding.USAGE,
        encoding.SHARED,
        encoding.PROFILE,
        encoding.BOARD,
        encoding.SHOWN,
        encoding.ALTERED,
        encoding.REPEATED,
        encoding.LOCATED,
        encoding.PASSAGES,
        encoding.REQUEST,
    ]
    head = re.findall(r"\[0, ([^]]*)\]", pack.meaning)[0].split(", ")
    assert (head.index("flags") + 1, head.index("age in seconds") + 1) == (encoding.FLAGS, encoding.AGE)


# Within its size


LISTS = st.lists(
    st.one_of(
        st.tuples(st.just(encoding.OMITTED), st.integers(0, 10**6), st.integers(0, 10**6), st.integers(0, 18)),
        st.lists(st.integers(0, 2**32 - 1), max_size=60).map(lambda ids: (encoding.ITEMS, *ids)),
        st.lists(st.integers(0, 100), max_size=10).map(lambda scores: (encoding.PASSAGE, 10**5, 10**5, 1, *scores)),
        st.lists(st.integers(0, 100), max_size=10).map(lambda scores: (encoding.ELSEWHERE, 2**31, *scores)),
    ).map(list),
    max_size=60,
)


@drawn(LISTS)
@settings(deadline=None)
def test_a_manifest_keeps_within_its_size_and_says_that_it_is_cut(more: list[list[int]]) -> None:
    base = [[encoding.HEAD, 1, 0, 12_000, 11_000, 140, 0, 2_592_000, 0, 281, 182_731, 45_000]]
    base += [[encoding.PART, part, 3, 12, 5000, 1250, 118, 139, 7] for part in range(7)]
    whole = [*base, *more]
    kept = encoding.fit_manifest(whole)
    assert len(json.dumps(kept, separators=(",", ":"))) <= encoding.LONGEST
    assert encoding.fit_manifest(whole) == kept
    value = manifest(kept)
    assert len(value.parts) == 7
    assert value.cut == (kept != whole)
    if value.cut:
        assert not any(each.score_parts for each in value.passages)


def test_comparisons_are_beside_and_are_no_manifests(memory: SupabaseMemory) -> None:
    told = talk(memory, 1)
    numbers = {"stage": "parallel", "old_messages": 3, "old_tokens": 9, "old_characters": 40, "old_ms": 1.25,
               "error": f"Timeout: {SECRET}"}  # fmt: skip
    call = Call("memory_compare", {"p_thread_id": "t", "p_user_id": memory.user_id, "p_comparison": numbers})
    assert memory._services.transport.perform(call)["recorded"]
    (compared,) = memory.rollout.comparisons(told.thread_id)
    assert (compared.old_tokens, compared.old_ms, compared.error) == (9, 1.25, "Timeout")
    assert compared.compared_at is not None
    assert compared.compared_at > datetime.now(UTC) - timedelta(minutes=5)
    assert len(told.manifests().manifests) == 1
    (stage,) = memory.rollout.report().stages
    assert (stage.comparisons, stage.failures) == (1, 1)


def test_the_parts_and_reasons_that_are_typed_are_those_of_the_tables_and_of_the_page() -> None:
    assert get_args(PartName) == tuple(part.name for part in PROMPT_PARTS)
    assert get_args(Reason) == tuple(PART_REASONS)
    page = (Path(__file__).parents[2] / "docs" / "manifests.md").read_text(encoding="utf-8")
    what = page.partition("## What is in it\n")[2].partition("\n## ")[0]
    assert {*re.findall(r"`(\w+)`", what)} >= {*get_args(PartName), *get_args(Reason)} - {"other"}
