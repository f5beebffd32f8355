"""The contents of each page, at any size, and the text of empty pages."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import psycopg
import pytest
from jinja2 import meta, nodes
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import (
    ContextBudget,
    Retention,
    SummaryPolicy,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
)
from langchain_supabase_memory.inspector import rendering, request_context, svg_charts
from langchain_supabase_memory.inspector.rendering import CLIP, LONGEST
from langchain_supabase_memory.inspector.screen_list import SCREENS
from langchain_supabase_memory.inspector.screens.conversations import PAGE as LISTED
from langchain_supabase_memory.inspector.screens.message_range import MAX_MESSAGES as IN_PLACE
from langchain_supabase_memory.inspector.screens.near_misses import MAX_NEAR_MISSES, near_misses
from langchain_supabase_memory.inspector.screens.prompt import MAX_BUDGET
from langchain_supabase_memory.inspector.screens.prompt_parts import MAX_LINES
from langchain_supabase_memory.inspector.screens.queue import MAX_PER_STATE as QUEUED
from langchain_supabase_memory.inspector.screens.timeline import PAGE as SHOWN
from langchain_supabase_memory.inspector.static_files import FILES
from langchain_supabase_memory.operations.manifests.parts import PROMPT_PARTS
from langchain_supabase_memory.operations.work import WorkState
from langchain_supabase_memory.values import Chunk, Recall
from langchain_supabase_memory.worker import Worker
from tests.chat_models import says
from tests.embedders import WordEmbedder
from tests.inspector.visiting import ASKED, Person, Reader, address_of, asked_of, memory_of
from tests.services.postgres import Cluster

LIGHT = 200_000
"""The most bytes of a page, whatever there is."""


def talk(count: int, **more: Any) -> list[HumanMessage | AIMessage]:
    kinds = (HumanMessage, AIMessage)
    return [kinds[n % 2](f"Sentence {n} about the kiln.", id=f"m{n}", **more) for n in range(count)]


# Conversations


async def test_a_list_goes_on_page_by_page_and_back(memory: SupabaseMemory) -> None:
    for number in range(2 * LISTED + 3):
        await memory.conversation(f"thread-{number:02}").aadd_turn(f"question {number}", "answer")
    async with Person(memory) as person:
        seen: list[str] = []
        address = "/"
        sizes = []
        while True:
            page = Reader((await person.http.get(address)).text)
            titles = [str(each["href"]) for each in page.all("a", class_="title")]
            seen += titles
            sizes.append(len(titles))
            following = page.all("a", rel="next")
            if not following:
                break
            address = str(following[0]["href"])
        assert sizes == [LISTED, LISTED, 3]
        assert len({*seen}) == len(seen) == 2 * LISTED + 3
        back = await person.http.get(str(page.all("a", rel="prev")[0]["href"]))
        assert [str(each["href"]) for each in Reader(back.text).all("a", class_="title")] == seen[LISTED : 2 * LISTED]


async def test_a_list_narrows_to_a_signal_and_the_timeline_shows_its_quote(memory: SupabaseMemory) -> None:
    for thread, words in (("sad", "Well. You never listen."), ("glad", "Thanks!")):
        conversation = memory.conversation(thread)
        await conversation.aadd_turn(words, "I see.")
        await conversation.aindex()
    async with Person(memory) as person:
        page = await person.page("/", signal="complaint")
        assert [str(each["href"]).partition("thread=")[2] for each in page.all("a", class_="title")] == ["sad"]
        assert "No conversation matches" in (await person.page("/", signal="giving_up")).text
        assert (await person.http.get("/?signal=anger")).status_code == 400
        assert (await person.http.get("/?signal=thanks&state=due")).status_code == 400
        timeline = await person.page("/conversation", thread="sad", agent="default")
        assert len(timeline.all("q")) == 1
        assert "complaint You never listen." in " ".join(timeline.text.split())


async def test_a_list_narrows_to_a_state_of_work_and_a_state_of_life(memory: SupabaseMemory, conn_string: str) -> None:
    threads = ("due", "idle", "dead", "waiting", "running", "opted-out", "archived")
    for thread in threads:
        await memory.conversation(thread).aadd_turn(f"about {thread}", "yes", idempotency_key=thread)
    await memory.conversation("opted-out").aopt_out(actor="maya")
    with psycopg.connect(conn_string, autocommit=True) as connection:
        for thread, change in {
            "dead": "run_after = 'infinity', dead_at = now(), error = 'AuthenticationError'",
            "waiting": "run_after = now() + interval '1 hour', attempts = 3, error = 'TimeoutError'",
            "running": "lease_token = gen_random_uuid(), lease_until = now() + interval '1 hour', worker = 'worker-7'",
        }.items():
            connection.execute(
                f"update memory_private.work w set {change} from memory.conversations c where c.id = w.conversation_id"
                " and c.user_id = w.user_id and c.user_id = %s and c.thread_id = %s".encode(),
                [memory.user_id, thread],
            )
        connection.execute(
            "delete from memory_private.work w using memory.conversations c where c.id = w.conversation_id"
            " and c.user_id = w.user_id and c.user_id = %s and c.thread_id = any (array['idle', 'archived'])",
            [memory.user_id],
        )
        connection.execute(
            "update memory.conversations set archived_at = now() where user_id = %s and thread_id = 'archived'",
            [memory.user_id],
        )
    async with Person(memory) as person:
        for state in threads:
            page = await person.page("/", state=state)
            names = [str(each["href"]).partition("thread=")[2] for each in page.all("a", class_="title")]
            assert state in names, state
            if state in ("dead", "waiting", "running", "opted-out", "archived"):
                assert names == [state]
                assert f"about {state}" in page.text
        everything = await person.page("/")
        for said in ("worker-7", "TimeoutError, 3 attempts", "AuthenticationError", "archived", "opted out"):
            assert said in everything.text
        await person.page("/", 400, state="no such state")
        await person.page("/", 400, agent="x" * 600)
        await person.page("/", 400, after="no such place")
        assert "No conversation matches" in (await person.page("/", agent="another")).text


async def test_everybodys_list_goes_on_by_its_ids(server: SupabaseMemory, user_id: str) -> None:
    for number in range(LISTED + 2):
        await server.for_user(f"{user_id}-{number:02}").conversation(f"t{number}", agent_id=user_id).aadd_turn("a", "b")
    async with Person(server) as person:
        first = await person.page("/", agent=user_id)
        second = Reader((await person.http.get(str(first.all("a", rel="next")[0]["href"]))).text)
        assert len(first.all("a", class_="title")) == LISTED
        assert len(second.all("a", class_="title")) == 2
        # A place that is none is the beginning.
        assert (
            len((await person.page("/", agent=user_id, after="somebody somewhere")).all("a", class_="title")) == LISTED
        )


async def test_everybodys_list_marks_what_is_not_remembered(server: SupabaseMemory, user_id: str) -> None:
    for thread in ("kept", "out"):
        await (
            server.for_user(user_id).conversation(thread, agent_id=user_id).aadd_turn("a", "b", idempotency_key=thread)
        )
    await server.for_user(user_id).conversation("out", agent_id=user_id).aopt_out(actor="maya")
    await server.for_user(user_id).privacy.aopt_out("a topic", actor="maya")
    async with Person(server) as person:
        rows = (await person.answer("/", agent=user_id)).text.split("<tr")[2:]
        assert [("opted out" in row) for row in rows] == ["thread=out" in row for row in rows]
        assert len(rows) == 2
        for state in ("opted-out", "archived"):
            assert "Filter by user as well" in (await person.page("/", 400, state=state)).text
            await person.page("/", state=state, user=user_id)


# The timeline


async def test_ten_thousand_messages_are_read_page_by_page(memory: SupabaseMemory) -> None:
    said = memory.conversation("long")
    for begin in range(0, 10_000, 2_000):
        await said.aappend(talk(10_000)[begin : begin + 2_000])
    async with Person(memory) as person:
        newest = await person.answer("/conversation", thread="long")
        assert len(newest.content) < LIGHT
        page = Reader(newest.text)
        assert [each["id"] for each in page.all("li") if (each.get("id") or "").startswith("m")] == [
            f"m{n}" for n in range(10_000 - SHOWN, 10_000)
        ]
        before = Reader((await person.http.get(str(page.all("a", rel="prev")[0]["href"]))).text)
        assert before.all("li", id=f"m{10_000 - SHOWN - 1}")
        middle = await person.page("/conversation", thread="long", at=5_000)
        assert middle.all("li", id="m5000", class_="target")
        assert "Sentence 5000 about" in middle.text
        for wrong in ("99999999999999999999", "-1", "x", "٣"):
            assert (await person.page("/conversation", thread="long", at=wrong)).all("ol", class_="lines")
        # Prompts have bounds as well, however much somebody wants to try.
        prompt = await person.answer("/conversation/prompt", thread="long", budget=10**9)
        page = Reader(prompt.text)
        assert f"Budget of {MAX_BUDGET:,} characters" in page.text
        assert len(page.all("span", class_="n")) == MAX_LINES
        assert "Sentence 9999 about" in page.text
        more = (await said.acontext(budget=ContextBudget(characters=MAX_BUDGET), model=None)).report()
        (recent,) = [section for section in more.sections if section.name == "recent"]
        assert recent.messages > 2 * MAX_LINES
        assert f"{recent.messages - MAX_LINES:,} more are in the timeline" in page.text
        assert len(prompt.content) < 2 * LIGHT


async def test_each_message_is_in_the_state_that_coverage_says(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aappend(talk(60))
    await said.summaries.amake(policy=SummaryPolicy(messages=10, keep_messages=6))
    await said.aappend(
        [
            HumanMessage("look it up", id="q"),
            AIMessage("", tool_calls=[{"name": "look_up", "args": {"what": "kiln"}, "id": "c"}], id="a"),
            ToolMessage("1,240 °C", tool_call_id="c", id="r"),
        ]
    )
    await said.aforget_message("m20")
    coverage = await said.acoverage()
    async with Person(memory) as person:
        page = await person.page("/conversation", thread="t", at=0)
        for number in (0, 19, 21, 49):
            place = page.elements.index(("li", next(each for each in page.all("li", id=f"m{number}"))))
            marks = [each["class"] for tag, each in page.elements[place:] if tag == "svg"]
            assert marks[0] == f"c-{coverage.range_of(number).state} mark"
        assert "Message 20: deleted" in page.text
        assert "look_up" in (await person.page("/conversation", thread="t")).text
        original = await person.page("/conversation/message", part=True, thread="t", number=61)
        assert '"look_up"' in original.text
        gone = await person.page("/conversation/message", part=True, thread="t", number=20)
        assert "may have expired" in gone.text
        await person.page("/conversation/message", 404, thread="t", number=20)
        await person.page("/conversation/message", 404, thread="t", number="x")


async def test_what_has_expired_is_said_and_not_shown(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id, retention=Retention(max_messages=4)) as memory:
        await memory.conversation("t").aappend(talk(10))
        async with Person(memory) as person:
            page = await person.page("/conversation", thread="t")
    assert "Messages 0 to 5: expired" in page.text
    assert "Sentence 5" not in page.text
    assert "Sentence 6" in page.text


async def test_a_hundred_thousand_characters_are_clipped_with_a_way_to_all(memory: SupabaseMemory) -> None:
    words = "".join(f"word{n} " for n in range(12_000))
    assert len(words) > 100_000
    await memory.conversation("t").aappend([HumanMessage(words, id="m0"), AIMessage("مرحبا 🦎 " + "ش" * 200, id="m1")])
    async with Person(memory) as person:
        answer = await person.answer("/conversation", thread="t")
        assert len(answer.content) < LIGHT
        page = Reader(answer.text)
        assert "word3 " in page.text
        assert f"word{CLIP}" not in page.text
        assert "مرحبا 🦎" in page.text
        assert all(each.get("dir") == "auto" for each in page.all("span", class_="text"))
        opened = await person.page("/conversation/message", part=True, thread="t", number=0)
        assert len(opened.text) < 3 * LONGEST
        link = next(each["href"] for each in opened.all("a") if "number=0" in str(each["href"]))
        assert "word11999" in Reader((await person.http.get(str(link))).text).text


# The prompt


async def test_the_prompt_is_what_a_model_would_read_in_its_order(conn_string: str, user_id: str) -> None:
    budget = ContextBudget(characters=6_000)  # quotes have a 25th of it
    async with memory_of(conn_string, user_id, budget=budget) as memory:
        said = memory.conversation("t")
        await said.aappend([*talk(100), HumanMessage("The code is E-47.", id="code"), *talk(300)[100:]])
        await Worker(memory.for_user(user_id)).drain()
        await said.board.aadd("fact", "The kiln is blue.", actor="maya")
        question = "What was the code?"
        pack = await said.acontext(question)
        async with Person(memory) as person:
            page = await person.page("/conversation/prompt", thread="t", question=question)
            small = await person.page("/conversation/prompt", thread="t", question=question, budget=600)
            tokens = await person.page("/conversation/prompt", thread="t", budget=500, unit="tokens")
            nothing = await person.page("/conversation/prompt", thread="t", question=question, recall="none")
        report = pack.report()
        parts = [str(each["id"]) for each in page.all("section") if str(each.get("id", "")).startswith("part-")]
        assert sorted(parts) == sorted(f"part-{section.name}" for section in report.sections)
        assert parts == ["part-summary", "part-recent", "part-board", "part-recalled", "part-current"]
        for section in report.sections:
            assert f"{section.tokens:,} token" in page.text
        assert "The kiln is blue." in page.text
        assert "The code is E-47." in page.text
        assert question in page.text
        assert "Budget of 600 characters" in small.text
        assert "Budget of 500 tokens" in tokens.text
        assert not nothing.all("section", id="part-recalled")
        copied, _ = json.JSONDecoder().raw_decode(page.text.partition("without contentCopy")[2])
        assert copied["tokens"] == report.tokens
        assert "kiln" not in json.dumps(copied), "no content"


async def test_a_look_makes_nothing(conn_string: str, user_id: str) -> None:
    """What a turn would make first, a page does not: no summary, no chunk, no work, no message."""
    async with memory_of(conn_string, user_id, budget=ContextBudget(characters=500)) as memory:
        await memory.conversation("t").aappend(talk(80))
        tables = ("conversations", "conversation_messages", "conversation_summaries", "working_memory_chunks")
        with psycopg.connect(conn_string, autocommit=True) as connection:

            def stored() -> list[Any]:
                return [
                    connection.execute(f"select to_jsonb(r) from memory.{each} r where user_id = %s".encode(), [user_id])
                    .fetchall() for each in tables
                ]  # fmt: skip

            before = stored()
            async with Person(memory) as person:
                for screen in SCREENS:
                    # There is no answer, no item of a board or a profile, and no space in a database without them.
                    missing = {"turn": 404, "item": 404, "space": 404, "erase": 404, "shared": 409, "source": 409}
                    missing["profile_item"] = 404
                    status = missing.get(screen.name, 200)
                    await person.page(screen.path, status, part=screen.name == "messages", **asked_of(screen))
                await person.page("/recall", thread="t", q="kiln")
            assert stored() == before
        # The verb itself would have.
        await memory.conversation("t").acontext("Which kiln?")
        assert await memory.conversation("t").summaries.alist()


@pytest.mark.parametrize("asked", [{"budget": "x"}, {"budget": "9" * 30}, {"unit": "x"}, {"recall": "x"}])
async def test_a_wish_that_is_none_is_left_out(memory: SupabaseMemory, asked: dict[str, Any]) -> None:
    await memory.conversation("t").aappend(talk(4))
    async with Person(memory) as person:
        assert (await person.page("/conversation/prompt", thread="t", **asked)).all("section", id="part-recent")
        assert "Budget of 50 characters" in (await person.page("/conversation/prompt", thread="t", budget=0)).text


async def test_a_range_is_read_in_place(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aappend(talk(60))
    await said.aforget_message("m3")
    async with Person(memory) as person:
        part = await person.page("/conversation/messages", part=True, thread="t", first=2, last=50)
        assert [each for each in range(60) if f"Sentence {each} about" in part.text] == [
            place for place in range(2, 2 + IN_PLACE) if place != 3
        ]
        assert "1 message of this range no longer exists" in part.text
        assert f"{49 - IN_PLACE} more messages in the timeline" in part.text
        whole = await person.answer("/conversation/messages", thread="t", first=2, last=5)
        assert (whole.status_code, whole.headers["location"].endswith("thread=t&at=2#messages")) == (303, True)
        for wrong in ({"first": 5, "last": 2}, {"first": "x", "last": 2}, {"first": 1}, {}):
            await person.page("/conversation/messages", 404, part=True, thread="t", **wrong)
        await person.page("/conversation/messages", 404, part=True, thread="nowhere", first=0, last=1)


# The prompts of earlier answers


def test_what_needs_nothing_of_a_page_is_made_once() -> None:
    """What is imported with a page's context is made anew for each import of each page."""
    environment = rendering._PAGES
    parsed = {path.name: environment.parse(path.read_text()) for path in rendering._TEMPLATES.glob("*.html")}
    imports = [(name, each) for name, page in parsed.items() for each in page.find_all(nodes.Import)]
    assert len(imports) > 30
    for name, each in imports:
        assert isinstance(each.template, nodes.Const)
        needed = meta.find_undeclared_variables(parsed[each.template.value]) - set(environment.globals)
        assert each.with_context == bool(needed), (name, each.template.value)


def test_a_sparkline_is_a_plot_of_one_line() -> None:
    for counts in ([0], [7], [0, 0, 0], [3, 0, 12, 999], [*range(0, 9_000, 300)]):
        points = [(place / max(len(counts) - 1, 1), float(count)) for place, count in enumerate(counts)]
        assert svg_charts.sparkline(counts) == svg_charts.plot([points]).lines[0]
    assert svg_charts.sparkline([]) == ""


def test_an_address_is_what_a_browser_sends() -> None:
    given = {"user": "ä b&c=d+e/f", "at": 12, "none": None, "empty": "", "first": 0, "on": True, "q": "100% “kiln”"}
    kept = {name: value for name, value in given.items() if value not in (None, "")}
    assert request_context._query(given) == urlencode(kept)


def test_every_part_has_a_color() -> None:
    style = FILES["inspector.css"].decode()
    assert all(f".c-{part.state} " in style or f".c-{part.state}," in style for part in PROMPT_PARTS)


async def test_an_answers_page_says_why_it_did_not_know(conn_string: str, user_id: str) -> None:
    settings: dict[str, Any] = {"budget": ContextBudget(tokens=700), "model": lambda _: "They speak of dishes."}
    async with memory_of(conn_string, user_id, **settings) as memory:
        said = memory.conversation("t")
        other = memory.conversation("other")
        await other.aappend([HumanMessage("My <b>passport</b> is X-4711."), AIMessage("Fine.")])
        await said.aappend([HumanMessage("Hazelnuts make me ill, <script>alert(1)</script>."), AIMessage("Noted.")])
        for number in range(25):
            question = HumanMessage(f"How is dish {number} made?")
            pack = await said.acontext(question)
            await said.aappend([question, AIMessage("Slowly, with onions. " * 20)], pack=pack)
        await said.aindex()
        question = HumanMessage("What could I bake for guests?")
        answer = AIMessage(
            "A hazelnut cake.", usage_metadata={"input_tokens": 5000, "output_tokens": 9, "total_tokens": 5009}
        )
        await said.aappend([question, answer], pack=await said.acontext(question))
        (newest,) = (await said.amanifests(limit=1)).manifests
        async with Person(memory) as person:
            listed = await person.page("/conversation/prompts", thread="t")
            assert "What could I bake for guests?" in listed.text
            assert "A hazelnut cake." in listed.text
            of_it: dict[str, Any] = {"thread": "t", "answer": newest.to_sequence}
            page = await person.page("/conversation/prompts/turn", **of_it)
            assert page.all("input", name="expected")
            assert "They speak of dishes." in page.text, "the summary that was read"
            assert f"{newest.unspent:,} of 700 tokens were unspent" in page.text
            assert f"about {5000 - newest.tokens:,} of them are the system prompt and the tools" in page.text
            explained = await person.answer("/conversation/prompts/turn", **of_it, expected="hazelnuts ill")
            words = Reader(explained.text)
            expected = await said.awhy(newest, "hazelnuts ill")
            assert f"It was not in the prompt. {expected.text}" in words.text
            assert "<script>alert" not in explained.text
            links = [str(each["href"]) for each in words.all("a")]
            assert any("at=0" in each and each.endswith("#m0") for each in links)
            assert {"#part-summary", "#cost"} <= {*links}
            assert any("/recall?" in each and "guests" in each for each in links)
            for each in links:
                if each.startswith("/recall"):
                    assert (await person.http.get(each)).status_code == 200
            elsewhere = await person.page("/conversation/prompts/turn", **of_it, expected="passport X-4711")
            assert any("thread=other" in str(each["href"]) for each in elsewhere.all("a"))
            nothing = await person.page("/conversation/prompts/turn", **of_it, expected="zeppelin")
            assert "Said nowhere" in nothing.text


async def test_the_next_prompt_and_the_savings_have_the_agents_own_budget(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id) as memory:
        said = memory.conversation("t")
        await said.aappend(talk(200))
        question = HumanMessage("Which kiln?")
        pack = await said.acontext(question, budget=ContextBudget(tokens=900), recall=None)
        await said.aappend([question, AIMessage("The blue one.")], pack=pack)
        async with Person(memory) as person:
            page = await person.page("/conversation/prompt", thread="t", question="Which kiln?")
            assert "Budget of 900 tokens" in page.text
            assert not page.all("section", id="part-recalled"), "recall was off"
            tried = await person.page("/conversation/prompt", thread="t", budget=3000, unit="characters")
            assert "Budget of 3,000 characters" in tried.text
            savings = await person.page("/conversation/savings", thread="t")
            report = (await said.acontext(budget=ContextBudget(tokens=900), model=None)).report()
            assert f"The next prompt has {report.tokens:,} tokens" in savings.text


async def test_a_prompt_has_the_tokens_of_the_system_prompt_and_the_tools(conn_string: str, user_id: str) -> None:
    def look_up(word: str) -> str:
        """Look a word up."""
        return word

    async with memory_of(conn_string, user_id) as memory:
        graph = create_agent(
            says("The blue one."),
            [look_up],
            system_prompt="You advise potters.",
            middleware=[SupabaseMemoryMiddleware(memory)],
        )
        settings: Any = {"configurable": {"thread_id": "t", "user_id": user_id}}
        await graph.ainvoke({"messages": [HumanMessage("Which kiln?")]}, settings)
        (manifest,) = (await memory.conversation("t").amanifests()).manifests
        assert manifest.request is not None
        words = f"system prompt {manifest.request.system} tokens1 tool {manifest.request.tools} tokens"
        async with Person(memory) as person:
            past = await person.page("/conversation/prompts/turn", thread="t", answer=manifest.to_sequence)
            following = await person.page("/conversation/prompt", thread="t")
    assert words in past.text
    assert words in following.text
    assert "As the request of the newest answer had them" in following.text


async def test_the_prompt_of_an_answer_has_a_link_of_its_own(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id, budget=ContextBudget(characters=4_000)) as memory:
        said = memory.conversation("t")
        await said.aappend(talk(60))
        await Worker(memory.for_user(user_id)).drain()
        await said.board.aadd("fact", "Maya wants a blue glaze.", actor="maya")
        for number in range(2):
            question = HumanMessage(f"Which kiln, {number}?", id=f"q{number}")
            pack = await said.acontext(question)
            await said.aappend([question, AIMessage("The blue one.", id=f"a{number}")], pack=pack)
        page = await said.amanifests()
        newest, first = page.manifests
        async with Person(memory) as person:
            listed = await person.page("/conversation/prompts", thread="t")
            links = [str(each["href"]) for each in listed.all("a") if "/prompts/turn" in str(each["href"])]
            assert len(links) == 2
            shown = Reader((await person.http.get(links[0])).text)
            assert f"{newest.tokens:,} tokens were sent instead of {newest.full_tokens:,}" in shown.text
            for part in newest.parts:
                assert part.name in shown.text
            assert f"Compared with the prompt of message {first.to_sequence}" in shown.text
            copied, _ = json.JSONDecoder().raw_decode(shown.text.partition("without contentCopy")[2])
            assert copied["tokens"] == newest.tokens
            assert "kiln" not in json.dumps(copied)
            assert "There is no previous prompt" in Reader((await person.http.get(links[1])).text).text
            # From the question, and from the answer, to what was known.
            for place in (newest.from_sequence, newest.to_sequence):
                opened = await person.page("/conversation/message", part=True, thread="t", number=place)
                assert links[0] in [each["href"] for each in opened.all("a")]
            never = await person.page("/conversation/message", part=True, thread="t", number=5)
            assert not [each for each in never.all("a") if "/prompts/turn" in str(each["href"])]
            # The items of the board by what they say, and each part's messages a click away.
            assert [each["hx-get"] for each in shown.all("a") if "first=" in str(each.get("hx-get"))]
            known = [item for item in (await said.board.aread()).items if item.id[:8] in newest.items]
            assert known
            assert all(item.text in shown.text for item in known)
            await said.board.adelete(known[0].id, actor="maya")
            left = Reader((await person.http.get(links[0])).text).text
            assert "1 item is no longer on the board" in left
            assert known[0].text not in left.partition("Board items")[2].partition("Not sent")[0]
            await person.page("/conversation/prompts/turn", 404, thread="t", answer=3)
            await person.page("/conversation/prompts/turn", 404, thread="t", answer="x")
            await said.aforget_message("m59")
            assert "were deleted" in Reader((await person.http.get(links[0])).text).text
            savings = await person.page("/conversation/savings", thread="t")
            assert "newest 2 answers" in savings.text


# Board and summaries


async def test_a_board_of_five_hundred_items_is_one_page(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aadd_turn("hello", "hi")
    for number in range(500):
        await said.board.aadd("fact", f"Fact number {number}.", actor="maya")
    async with Person(memory, write=True) as person:
        answer = await person.answer("/conversation/board", thread="t")
        page = Reader(answer.text)
    assert len([each for each in page.all("li") if str(each.get("id", "")).startswith("item-")]) == 500
    assert len(page.all("form")) < 10, "its forms come when they are asked for"
    assert len(answer.content) < 1_000_000


async def test_evidence_shows_the_quote_in_its_message(memory: SupabaseMemory) -> None:
    said = memory.conversation("t")
    await said.aappend(
        [HumanMessage("So. My kiln stopped at 840 degrees. Bye.", id="m0"), AIMessage("Noted.", id="m1")]
    )
    await said.board.arevise()
    board = await said.board.aread()
    item = next(each for each in board.items if each.quote and "840" in each.quote)
    async with Person(memory, write=True) as person:
        part = await person.answer("/conversation/board/item", part=True, thread="t", item=item.id)
        assert f"<mark>{item.quote}</mark>" in part.text
        assert "<html" not in part.text
        assert (await person.page("/conversation/board/item", thread="t", item=item.id)).all("textarea", name="text")
        await person.page("/conversation/board/item", 404, thread="t", item="no such")
        await said.aforget_message("m0")
        left = [each for each in (await said.board.aread()).items if each.id == item.id]
        assert left == []
        await person.page("/conversation/board/item", 404, thread="t", item=item.id)


# Recall


async def test_recall_shows_what_each_part_adds_with_vectors_and_without(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id, embeddings=WordEmbedder()) as memory:
        said = memory.conversation("t")
        await said.aappend([HumanMessage("The kiln shows error E-47.", id="m0"), AIMessage("Let it cool.", id="m1")])
        await said.aindex()
        async with Person(memory) as person:
            both = await person.page("/recall", thread="t", q="kiln error")
            words = await person.page("/recall", thread="t", q="kiln error", words="on")
            user = await person.page("/recall", q="kiln error")
            none = await person.page("/recall", thread="t", q="zebra", words="on")
    assert "keywords and vectors" in both.text
    assert "keywords only: rank 1" in both.text
    assert "meaning" in both.text.partition("score")[2]
    assert "keywords only" in words.text
    assert "cosine" not in words.text
    assert "The kiln shows error E-47." in user.text
    assert "No results" in none.text


async def test_two_settings_stand_side_by_side_with_what_just_missed(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id, embeddings=WordEmbedder()) as memory:
        for thread in ("t", "other"):
            said = memory.conversation(thread)
            await said.aappend([HumanMessage(f"The kiln of {thread} shows error {n}.", id=f"m{n}") for n in range(9)])
            await said.aindex()
        await memory.conversation("secret").aappend([HumanMessage("The kiln of the secret shows error 1.", id="m0")])
        await memory.conversation("secret").aindex()
        await memory.conversation("secret").aopt_out(actor="maya")
        here: dict[str, Any] = {"thread": "t", "q": "kiln error"}
        async with Person(memory) as person:
            few = await person.page("/recall", **here, limit=3)
            floor = await person.page("/recall", **here, least="0.999")
            room = await person.page("/recall", **here, characters=60)
            beside = await person.page(
                "/recall", **here, scope="user", limit=14, scope2="conversation", limit2=4, words2="on", compare="on"
            )
            wrong = await person.page(
                "/recall", **here, limit="x", least="7", characters="-1", scope2="x", compare="on"
            )
    assert len(few.all("ol", class_="results missed")) == 1
    assert [f"its rank is {rank}, beyond the limit of 3" in few.text for rank in range(3, 10)] == [
        rank in range(4, 4 + MAX_NEAR_MISSES) for rank in range(3, 10)
    ]
    assert "No results." in floor.text
    assert "is below 1.00" in floor.text, "the floor is what it missed"
    assert len(room.all("ol", class_="results missed")) == 1
    assert "no room: it has" in room.text
    assert {attributes["id"] for attributes in beside.all("h2") if "found" in str(attributes.get("id"))} == {
        "found1", "found2"
    }  # fmt: skip
    assert "beside: rank " in beside.text
    assert "keywords and vectors" in beside.text
    assert "beyond the limit of 14" in beside.text
    assert "beyond the limit of 4" in beside.text
    assert "secret" not in beside.text, "what is opted out is never shown"
    assert len(wrong.all("ol", class_="results")) == 2


def test_what_just_missed_says_the_first_reason_that_holds() -> None:
    def passage(name: str, words: float, similarity: float | None = None) -> Chunk:
        return Chunk(
            name, "t", "default", 0, 1, 0, 0, [name], 0, "dialogue", "user", None, datetime.now(UTC), "x" * 50, 0.5,
            words=words, similarity=similarity,
        )  # fmt: skip

    ranked = Recall([passage("a", 4, 0.9), passage("b", 2, 0.6), passage("c", 1, 0.2), passage("d", 1)])
    bounds: dict[str, Any] = {"limit": 2, "characters": None, "min_similarity": 0.5}
    missed = near_misses(Recall(ranked.chunks[:2]), ranked, **bounds)
    assert [(each.rank, each.reason) for each in missed] == [(3, "floor"), (4, "floor")]
    assert "keyword score of 0.25" in missed[1].text
    missed = near_misses(Recall(ranked.chunks[:1]), ranked, **{**bounds, "characters": 80, "min_similarity": None})
    assert [each.reason for each in missed] == ["room"] * 3
    missed = near_misses(Recall(ranked.chunks[:2]), ranked, **{**bounds, "characters": 100, "min_similarity": None})
    assert [each.reason for each in missed] == ["rank"] * 2
    assert near_misses(ranked, ranked, **bounds) == []


# The queue


async def test_the_queue_says_who_is_at_what(server: SupabaseMemory, user_id: str, conn_string: str) -> None:
    await server.for_user(user_id).conversation("stuck").aadd_turn("a", "b")
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "update memory_private.work set run_after = 'infinity', dead_at = now(), paused ="
            """ '{"summary": {"error": "AuthenticationError", "failures": 8, "until": "infinity"}}' where user_id = %s""",
            [user_id],
        )
    async with Person(server) as person:
        everybody = await person.page("/queue")
        one = await person.page("/queue", user=user_id)
    assert "dead" in everybody.text
    assert "summary: AuthenticationError, 8 failures, given up" in one.text


async def test_every_worker_is_named_and_every_conversation_counted(
    server: SupabaseMemory, user_id: str, conn_string: str
) -> None:
    many = QUEUED + 3
    for number in range(many):
        await server.for_user(user_id).conversation(f"t{number}").aadd_turn("a", "b", idempotency_key=str(number))
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "with numbered as (select user_id, conversation_id, row_number() over (order by conversation_id) as n"
            "  from memory_private.work where user_id = %s) "
            "update memory_private.work w set lease_token = gen_random_uuid(), run_after = now(),"
            " lease_until = now() + interval '1 hour', worker = %s || case when n.n > 20 then '-last' else '-first' end"
            " from numbered n where w.user_id = n.user_id and w.conversation_id = n.conversation_id",
            [user_id, user_id],
        )
    async with Person(server) as person:
        one = (await person.page("/queue", user=user_id)).text
        everybody = await person.page("/queue")
    assert f"{user_id}-first: 20" in one
    assert f"{user_id}-last: 3" in one
    assert f"Workers 2Processing {many} conversations." in one
    assert f"Running more than {QUEUED}" in one
    assert f"The first {QUEUED}. Show all" in one
    assert f"{user_id}-last: 3" in everybody.text
    assert len([each for each in everybody.all("a") if str(each.get("id")).startswith("running-")]) == QUEUED


async def test_the_states_of_work_have_each_a_mark(memory: SupabaseMemory) -> None:
    from typing import get_args

    from langchain_supabase_memory.cli.formatting import STATE_STYLES

    assert {*STATE_STYLES} == {*get_args(WorkState)}
    async with Person(memory) as person:
        css = (await person.http.get("/static/inspector.css")).text
        page = await person.page("/")
    for state in STATE_STYLES:
        assert f".c-{state}" in css
        assert page.all("svg", class_=f"c-{state} mark")


# Nothing, and what goes wrong


@pytest.mark.parametrize(
    "asked",
    [
        {},
        {"thread": ""},
        {"thread": "nowhere"},
        {"thread": "x" * 600},
        {"thread": "\x00"},
        {"thread": "t", "agent": "x"},
    ],
)
async def test_a_conversation_that_is_not_there_has_a_page_that_says_so(
    memory: SupabaseMemory, asked: dict[str, Any]
) -> None:
    await memory.conversation("t").aadd_turn("a", "b")
    async with Person(memory) as person:
        for screen in SCREENS:
            if screen.is_of_conversation:
                named = {**ASKED.get(screen.name, {}), **asked}
                page = await person.page(screen.path, 404, part=screen.name == "messages", **named)
                assert "Start at the list" in page.text or screen.name == "item", screen.name


async def test_an_empty_memory_has_pages_too(memory: SupabaseMemory) -> None:
    await memory.conversation("empty").aopt_out(actor="maya")
    async with Person(memory, write=True) as person:
        for screen in SCREENS:
            if screen.label or screen.name == "history":
                await person.page(screen.path, **asked_of(screen, "empty"))


def test_the_page_of_the_inspector_has_a_row_for_each_screen() -> None:
    page = (Path(__file__).parents[2] / "docs" / "inspector.md").read_text(encoding="utf-8")
    table = page.partition("| screen | what it shows |\n| --- | --- |\n")[2].partition("\n\n")[0]
    assert [row.split("|")[1].strip() for row in table.splitlines()] == [each.label for each in SCREENS if each.label]


NEEDED = {
    "conversations": "memory_conversations", "recall": "memory_recall", "queue": "memory_status",
    "timeline": "memory_coverage", "message": "memory_manifests", "prompt": "memory_context",
    "prompts": "memory_manifests", "turn": "memory_manifests", "board": "memory_board",
    "history": "memory_control_changes", "summaries": "memory_summaries", "savings": "memory_comparisons",
    "spaces": "memory_spaces", "search": "memory_find", "profile": "memory_profile", "profile_export": "memory_profile",
    "topics": "memory_topics", "insights": "memory_usage",
}  # fmt: skip
"""A function that each screen needs and that another release may lack."""
FUNCTIONS = {address_of(each): NEEDED[each.name] for each in SCREENS if each.name in NEEDED} | {
    "/?state=opted-out": "memory_opt_outs"
}
OF_A_SPACE = {"space", "erase", "shared", "source"}
"""Screens that need a space, which tests/inspector/test_spaces.py has."""
ADDRESSES = [
    *(address_of(each) for each in SCREENS if each.name not in {"item", "profile_item", *OF_A_SPACE}), "/?state=opted-out",
]  # fmt: skip


def test_each_screen_names_a_function_that_it_needs() -> None:
    # Which reports it; which leads to the timeline; which are on the board and in the profile.
    exempt = {"doctor", "messages", "item", "profile_item"}
    assert NEEDED.keys() == {each.name for each in SCREENS} - exempt - OF_A_SPACE


async def test_a_database_of_another_release_says_what_to_do(cluster: Cluster) -> None:
    address = cluster.conn_string(cluster.migrated_database())
    async with memory_of(address, "maya") as memory, Person(memory) as person:
        said = memory.conversation("t")
        asked = [HumanMessage("Which kiln?", id="q"), AIMessage("The blue one.", id="a")]
        await said.aappend(asked, pack=await said.acontext("Which kiln?"))
        for path in ADDRESSES:
            assert (await person.http.get(path)).status_code in (200, 303), path
        with psycopg.connect(address, autocommit=True) as connection:
            for path, name in FUNCTIONS.items():
                renamed = f"alter function public.{name} rename to {name}_of_another_release"
                connection.execute(renamed.encode())
                answer = await person.http.get(path)
                assert answer.status_code == 503, path
                assert "supabase-memory migrate" in Reader(answer.text).text, path
                if name == "memory_conversations":
                    assert "supabase-memory migrate" in (await person.page("/doctor")).text
                connection.execute(f"alter function public.{name}_of_another_release rename to {name}".encode())
                assert (await person.http.get(path)).status_code == 200, path


async def test_a_database_without_a_schema_says_what_to_do(cluster: Cluster) -> None:
    async with memory_of(cluster.conn_string(cluster.create_database()), "maya") as memory, Person(memory) as person:
        for path in FUNCTIONS:
            page = Reader((await person.http.get(path)).text)
            assert "supabase-memory migrate" in page.text, path
        assert "supabase-memory migrate" in (await person.page("/doctor")).text


async def test_times_are_those_that_were_given(memory: SupabaseMemory) -> None:
    at = datetime.now(UTC).replace(hour=13, minute=57, second=0, microsecond=0) - timedelta(days=1)
    await memory.conversation("t").aappend([HumanMessage("hello", id="m0")], created_at=at)
    async with Person(memory) as person:
        page = await person.page("/conversation", thread="t")
    assert f"{at.day} {at:%b} 13:57" in page.text
    assert page.all("time", datetime=at.isoformat())


def test_a_title_shows_what_shapes_it_and_names_what_does_not() -> None:
    for name in ("id", "legible"):
        written = rendering._PAGES.filters[name]
        assert written("Trip 👩\u200d👩\u200d👧 and می\u200cخواهم") == "Trip 👩\u200d👩\u200d👧 and می\u200cخواهم"
        assert written("a\u200db\u202e") == r"a\u200db\u202e"
