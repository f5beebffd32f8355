"""The inspector's search: messages, items and titles of one user, each with its state and its place."""

from __future__ import annotations

from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import SummaryPolicy, SupabaseMemory
from tests.inspector.test_screens import talk
from tests.inspector.visiting import Person, Reader, memory_of


async def fill(memory: SupabaseMemory) -> None:
    """A kiln in a summarized message and one that is not, on the board, in the profile and in a title."""
    studio = memory.conversation("studio")
    await studio.aappend([HumanMessage("My kiln shows E-47, <b>twice</b>."), *talk(80)])
    await studio.summaries.amake(policy=SummaryPolicy(messages=20, keep_messages=10))
    await studio.aappend([HumanMessage("And now E-47 again."), AIMessage("Fine.")])
    await studio.board.aadd("fact", "The kiln showed E-47.", actor="maya")
    await studio.aupdate(title="About E-47")
    aside = memory.conversation("aside")
    await aside.aappend([HumanMessage("A secret E-47."), AIMessage("Fine.")])
    await aside.aopt_out(actor="maya")
    await memory.profile.aremember("I know what E-47 means", actor="maya")


async def test_messages_items_and_titles_come_with_their_states(memory: SupabaseMemory) -> None:
    await fill(memory)
    async with Person(memory) as person:
        answer = await person.answer("/search", q="E-47")
        page = Reader(answer.text)
        assert "<b>twice" not in answer.text
        for words in ("summarized", "word for word", "opted out", "on the board", "in the profile", "About E-47"):
            assert words in page.text, words
        links = [str(each["href"]) for each in page.all("a", class_="title")]
        assert len(links) == 7, links
        for each in links:
            assert (await person.http.get(each)).status_code == 200, each
        (field,) = page.all("input", id="search")
        assert field["value"] == "E-47"
        assert "No message has these words" in (await person.page("/search", q="zeppelin")).text
        assert "Enter words above" in (await person.page("/search")).text
        assert "No message" in (await person.page("/search", q="' or 1=1 -- %s \u202e")).text


async def test_a_server_searches_one_user(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id) as memory:
        await fill(memory)
    async with memory_of(conn_string) as server, Person(server) as person:
        assert "Enter a user" in (await person.page("/search", q="E-47")).text
        page = await person.page("/search", q="E-47", user=user_id)
        assert all(f"user={user_id}" in str(each["href"]) for each in page.all("a", class_="title"))
        other = await person.page("/search", q="E-47", user=f"{user_id}-2")
        assert "No message has these words" in other.text


async def test_more_results_are_a_page_further(memory: SupabaseMemory) -> None:
    await memory.conversation("t").aappend([HumanMessage(f"kiln {number}") for number in range(30)])
    async with Person(memory) as person:
        page = await person.page("/search", q="kiln")
        assert len(page.all("a", class_="title")) >= 20
        (more,) = page.all("a", rel="next")
        assert len(Reader((await person.http.get(str(more["href"]))).text).all("a", class_="title")) >= 10


async def test_every_page_has_the_search_in_its_head(memory: SupabaseMemory) -> None:
    await fill(memory)
    async with Person(memory) as person:
        for path in ("/", "/conversation?thread=studio", "/queue"):
            page = Reader((await person.http.get(path)).text)
            assert page.all("form", role="search"), path
            assert page.all("input", id="search"), path
