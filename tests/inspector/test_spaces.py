"""The screens of spaces: who sees what, each action as it is stored, what is refused, and any size."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from typing import Any

import psycopg
import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import Retention, SupabaseMemory
from langchain_supabase_memory.inspector import live_updates
from langchain_supabase_memory.inspector.screen_list import SCREENS
from langchain_supabase_memory.inspector.screens.space import PAGE, retention_text
from langchain_supabase_memory.inspector.screens.spaces import PAGE as LISTED
from tests.inspector.sharing import Studio, studio
from tests.inspector.test_screens import LIGHT
from tests.inspector.test_security import HOSTILE, OF_SPACES, harmless
from tests.inspector.visiting import Person, Reader, asked_of, by_door, memory_of
from tests.services.postgres import Cluster

SPACE = "/spaces/space"
FIELDS = re.compile(r'value="[^"]*"|<textarea[^>]*>[^<]*')


@pytest.fixture(scope="module")
def address(cluster: Cluster, shared: str) -> str:
    return cluster.conn_string(shared)


@pytest.fixture
async def server(address: str) -> AsyncIterator[SupabaseMemory]:
    async with memory_of(address) as made:
        yield made


@pytest.fixture
def space(address: str) -> Studio:
    return studio(address)


@pytest.fixture(params=["server", "claims", "token"])
async def of(request: pytest.FixtureRequest, server: SupabaseMemory) -> AsyncIterator[Any]:
    """A user's memory: a server that names its user, and a signed-in user by both doors."""
    async with by_door(request, server, "shared_api") as of_user:
        yield of_user


def buttons(page: Reader) -> set[str]:
    """Where the forms of a page send what they change."""
    return {str(each["action"]).partition("?")[0] for each in page.all("form", method="post")}


async def test_without_the_switch_the_page_says_how_to_set_it(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id) as memory, Person(memory, write=True) as person:
        page = await person.page("/spaces")
        assert "supabase-memory migrate --spaces" in page.text
        assert not page.all("form", method="post")
        answer = await person.post("/spaces/create", {"name": "Studio"})
        assert answer.status_code == 409
        assert "migrate --spaces" in Reader(answer.text).text
        assert "migrate --spaces" in (await person.page(SPACE, 409, space="space:x")).text
    async with memory_of(conn_string) as server, Person(server) as person:
        assert "migrate --spaces" in (await person.page("/spaces")).text


async def test_a_space_shows_its_people_and_who_said_what(of: Any, space: Studio) -> None:
    async with Person(of(space.maya)) as person:
        listed = await person.page("/spaces")
        assert "StudioWho fires the kiln.manager" in listed.text
        href = next(str(each["href"]) for each in listed.all("a", class_="title"))
        page = Reader((await person.http.get(href)).text)
        for shown in ("We fire the kiln on Friday.", f"by {space.ben}", space.eve, "reader", "Everything is kept."):
            assert shown in page.text
        assert not page.all("form", method="post"), "it is read-only"
        assert "What you contributed" not in page.text
        plan = await person.page("/", space=space.space_id)
        inside = next(str(each["href"]) for each in plan.all("a", class_="title") if "plan" in str(each["href"]))
        timeline = Reader((await person.http.get(inside)).text)
        assert "The kiln is at cone six." in timeline.text
        assert f"User ({space.maya})" in timeline.text
        assert "plan" not in (await person.page("/")).text, "it is in none of the user's own"


@pytest.mark.parametrize("who", ["maya", "ben", "eve"])
async def test_nobody_sees_a_form_that_is_not_for_them(of: Any, space: Studio, who: str) -> None:
    may = {
        "maya": {"update", "leave", "withdraw", "member", "invite", "name"},
        "ben": {"leave", "withdraw", "name"},
        "eve": {"leave", "name"},
    }[who]
    async with Person(of(getattr(space, who)), write=True) as person:
        page = await person.page(SPACE, space=space.space_id)
        assert buttons(page) == {f"/spaces/{each}" for each in may}
        assert ("Open invitations" in page.text) == (who == "maya")
        erase = await person.answer("/spaces/erase", space=space.space_id)
        assert erase.status_code == (200 if who == "maya" else 403), erase.text
        given = {
            "sure": "1",
            "member": space.eve,
            "role": "manager",
            "uses": "1",
            "days": "1",
            "name": "Mine",
            "was_name": "",
        }
        if who != "maya":
            for path in ("update", "invite", "close", "member", "forget"):
                refused = await person.post(f"/spaces/{path}", given, space=space.space_id)
                assert refused.status_code == 403, path
                assert "manager" in Reader(refused.text).text, Reader(refused.text).text
        if who == "eve":
            refused = await person.post("/spaces/withdraw", {"sure": "1", "item": space.item}, space=space.space_id)
            assert refused.status_code == 403
    async with Person(of(space.maya)) as person:
        page = await person.page(SPACE, space=space.space_id)
        assert "We fire the kiln on Friday." in page.text


async def test_who_is_not_in_a_space_sees_nothing_of_it(
    of: Any, space: Studio, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_updates, "STREAM_SECONDS", 0.1)
    async with Person(of(space.stranger), write=True) as person:
        for named in (space.space_id, "space:00000000-0000-4000-8000-000000000000", "Studio", "space:\0", "s" * 600):
            for screen in SCREENS:
                if screen.name in ("doctor",):
                    continue
                answer = await person.answer(screen.path, **asked_of(screen, "plan") | {"space": named})
                assert answer.status_code == 404, (screen.name, named)
                assert "cone six" not in answer.text
        for path in OF_SPACES:
            if path not in ("/spaces/create", "/spaces/join"):
                form = {
                    "sure": "1",
                    "item": space.item,
                    "member": space.eve,
                    "role": "reader",
                    "uses": "1",
                    "days": "1",
                }
                form |= {"name": "Mine", "was_name": ""}
                assert (await person.post(path, form, space=space.space_id)).status_code == 404, path
        told = await person.answer("/events", about="space", space=space.space_id, seen="x")
        assert told.text == "retry: 2000\n\nevent: changed\ndata:\n\nevent: again\ndata:\n\n"
        assert (await person.answer("/spaces/source", item=space.item)).status_code == 404
        assert "in no space" in (await person.page("/spaces")).text


async def test_a_space_is_created_changed_and_erased(of: Any, server: SupabaseMemory, space: Studio) -> None:
    async with Person(of(space.stranger), write=True) as person:
        done = await person.post("/spaces/create", {"name": "Shop", "about": "The café."})
        assert done.status_code == 303
        (made,) = await server.for_user(space.stranger).spaces.alist()
        assert (made.name, made.about, made.role) == ("Shop", "The café.", "manager")
        named: dict[str, Any] = {"space": made.space_id}
        handle = server.for_user(space.stranger).space(made.space_id)
        fields = {"name": "Café", "was_name": "Shop", "about": "The café.", "was_about": "The café."}
        fields |= {"days": "30", "was_days": "", "turns": "", "was_turns": ""}
        assert (await person.post("/spaces/update", fields, **named)).status_code == 303
        info = await handle.ainfo()
        assert (info.name, info.about, retention_text(info.keep)) == (
            "Café",
            "The café.",
            "Kept: messages for 30 days.",
        )
        page = await person.page(SPACE, **named)
        assert page.all("input", name="days")[0]["value"] == "30"
        await person.post("/spaces/update", {"messages": "5", "was_messages": ""}, **named)
        assert retention_text((await handle.ainfo()).keep) == "Kept: its newest 5 messages, messages for 30 days."
        await person.post(
            "/spaces/update", {"messages": "", "was_messages": "5", "days": "", "was_days": "30"}, **named
        )
        assert (await handle.ainfo()).keep is None
        for bad in ("0", "-1", "1.5", "x", "1" * 10, "٣"):
            assert (await person.post("/spaces/update", {"days": bad, "was_days": ""}, **named)).status_code == 400, bad

        await handle.memory.conversation("plan").aappend([HumanMessage("Hello")])
        asked = await person.page("/spaces/erase", **named)
        assert "1 conversation" in asked.text
        assert "1 membership" in asked.text
        assert (await person.post("/spaces/forget", {}, **named)).status_code == 400, "it is asked first"
        assert (await person.post("/spaces/forget", {"sure": "1"}, **named)).status_code == 303
        assert await server.for_user(space.stranger).spaces.alist() == []
        await person.page(SPACE, 404, **named)


async def test_an_invitation_is_shown_once_and_lets_somebody_in(of: Any, server: SupabaseMemory, space: Studio) -> None:
    async with Person(of(space.maya), write=True) as person:
        given = {"role": "contributor", "uses": "2", "days": "3"}
        made = await person.post("/spaces/invite", given, space=space.space_id)
        assert made.status_code == 200
        assert made.headers["cache-control"] == "no-store"
        printed = re.search(r'<pre id="token"[^>]*>([^<]+)</pre>', made.text)
        assert printed is not None
        page = await person.page(SPACE, space=space.space_id)
        assert printed[1] not in page.text
        assert "contributor2" in page.text
        for wrong in (
            {"role": "manager"},
            {"role": "king"},
            {"uses": "0"},
            {"uses": "1001"},
            {"days": ""},
            {"days": "366"},
        ):
            answer = await person.post("/spaces/invite", {**given, **wrong}, space=space.space_id)
            assert answer.status_code == 400, (wrong, answer.text)
    async with Person(of(space.stranger), write=True) as person:
        for text, status in (("", 400), ("nonsense", 404), ("a.b", 404), ("x" * 10_000, 404)):
            assert (await person.post("/spaces/join", {"token": text})).status_code == status, text
        joined = await person.post("/spaces/join", {"token": f" {printed[1]}\n"})
        assert space.space_id.partition(":")[2] in joined.headers["location"]
        assert "you are a contributor" in (await person.page(SPACE, space=space.space_id)).text
    async with Person(of(space.maya), write=True) as person:
        assert (await person.post("/spaces/close", {}, space=space.space_id)).status_code == 400
        assert (await person.post("/spaces/close", {"sure": "1"}, space=space.space_id)).status_code == 303
        assert (await server.for_user(space.maya).space(space.space_id).ainfo()).invitations == ()


async def test_members_are_named_by_themselves_and_by_managers(of: Any, server: SupabaseMemory, space: Studio) -> None:
    asked: Any = {"space": space.space_id}

    async def names() -> dict[str, str]:
        members = (await server.space(space.space_id).ainfo()).members
        return {each.user_id: each.name for each in members}

    for who, member, name, status in (
        (space.maya, space.ben, "Ben", 303),
        (space.eve, space.eve, "Eve", 303),
        (space.eve, space.ben, "Benny", 403),
        (space.maya, space.eve, "Assistant", 400),
        (space.maya, space.eve, "", 400),
        (space.maya, "nobody", "Nobody", 404),
        (space.maya, "", "Nobody", 400),
        (space.stranger, space.ben, "Stranger", 404),
    ):
        async with Person(of(who), write=True) as person:
            answer = await person.post("/spaces/name", {"member": member, "name": name}, **asked)
            assert answer.status_code == status, (who, member, name, Reader(answer.text).text)
    assert ((await names())[space.ben], (await names())[space.eve]) == ("Ben", "Eve")
    async with Person(of(space.eve), write=True) as person:
        page = await person.page(SPACE, **asked)
        assert "called Ben" in page.text
        assert [each["value"] for each in page.all("input", name="name")] == ["Eve"], "their own alone"
    async with Person(of(space.maya)) as person:
        assert "/spaces/name" not in buttons(await person.page(SPACE, **asked)), "without --write"


async def test_roles_are_set_and_taken_from_the_next_page_on(of: Any, server: SupabaseMemory, space: Studio) -> None:
    async with Person(of(space.maya), write=True) as maya, Person(of(space.eve), write=True) as eve:
        given = {"member": space.eve, "role": "contributor"}
        assert (await maya.post("/spaces/member", given, space=space.space_id)).status_code == 400
        given["sure"] = "1"
        assert (await maya.post("/spaces/member", given, space=space.space_id)).status_code == 303
        assert "you are a contributor" in (await eve.page(SPACE, space=space.space_id)).text
        for wrong, status in (({"role": "king"}, 400), ({"member": "nobody"}, 404), ({"member": ""}, 400)):
            answer = await maya.post("/spaces/member", {**given, **wrong}, space=space.space_id)
            assert answer.status_code == status, wrong
        last = await maya.post("/spaces/member", {**given, "member": space.maya}, space=space.space_id)
        assert last.status_code == 400
        assert "manager" in Reader(last.text).text
        removed = await maya.post("/spaces/member", {**given, "remove": "1"}, space=space.space_id)
        assert removed.status_code == 303
        for path in (SPACE, "/"):
            await eve.page(path, 404, space=space.space_id)
        await eve.page("/conversation", 404, space=space.space_id, thread="plan")
        left = await maya.post("/spaces/leave", {"sure": "1"}, space=space.space_id)
        assert left.status_code == 400, "the last manager"
    async with Person(of(space.ben), write=True) as ben:
        assert (await ben.post("/spaces/leave", {}, space=space.space_id)).status_code == 400
        assert (await ben.post("/spaces/leave", {"sure": "1"}, space=space.space_id)).status_code == 303
        await ben.page(SPACE, 404, space=space.space_id)
        page = await ben.page("/spaces")
        assert "Left, with something of yours in it" in page.text
        shared = await ben.page("/spaces/shared")
        assert "a space that you have left" in shared.text
        form = {"item": space.item, "sure": "1", "back": "shared"}
        assert (await ben.post("/spaces/withdraw", form, space=space.space_id)).status_code == 303
    board = await server.for_user(space.maya).space(space.space_id).memory.conversation("board").board.aread()
    assert board.items == []


async def test_only_its_owner_follows_a_quote_back(of: Any, server: SupabaseMemory, space: Studio) -> None:
    async with Person(of(space.ben), write=True) as ben:
        page = await ben.page(SPACE, space=space.space_id)
        assert "What you contributed" in page.text
        (link,) = [str(each["href"]) for each in page.all("a") if "/spaces/source" in str(each["href"])]
        found = await ben.http.get(link)
        assert found.status_code == 303
        assert found.headers["location"].endswith("#m3")
        assert "I am tired." in (await ben.http.get(found.headers["location"])).text
    async with Person(of(space.maya), write=True) as maya:
        page = await maya.page(SPACE, space=space.space_id)
        assert "diary" not in page.text
        assert "/spaces/source" not in str(page.elements)
        await maya.page("/spaces/source", 404, item=space.item)
        for wrong, status in (("x", 404), ("-" * 36, 400), ("00000000-0000-4000-8000-000000000000", 404)):
            answer = await maya.post("/spaces/withdraw", {"item": wrong, "sure": "1"}, space=space.space_id)
            assert answer.status_code == status, wrong
        assert (await maya.post("/spaces/withdraw", {"item": space.item}, space=space.space_id)).status_code == 400
        done = await maya.post("/spaces/withdraw", {"item": space.item, "sure": "1"}, space=space.space_id)
        assert done.status_code == 303
        assert "There is no contributed quote" in (await maya.page(SPACE, space=space.space_id)).text


async def test_what_is_derived_in_a_space_is_changed_by_its_managers_over_a_server(
    server: SupabaseMemory, space: Studio
) -> None:
    asked: dict[str, Any] = {"space": space.space_id, "thread": "plan"}
    claims = {"sub": space.maya, "role": "authenticated"}
    people = {
        "manager": (server.for_user(space.maya), True),
        "contributor": (server.for_user(space.ben), False),
        "reader": (server.for_user(space.eve), False),
        "token": (server.for_token(claims), False),
    }
    for who, (memory, may) in people.items():
        async with Person(memory, write=True, actor="ana") as person:
            page = await person.page("/conversation/board", **asked)
            assert ("/conversation/board/add" in buttons(page)) == may, who
            form = {"kind": "fact", "text": f"By the {who}.", "do": "opt_out", "number": "1"}
            for path in ("board/add", "remember", "summarize", "regenerate", "segment", "board/summary"):
                answer = await person.post(f"/conversation/{path}", form, **asked)
                assert (answer.status_code == 403) != may, (who, path)
    board = await server.space(space.space_id).memory.conversation("plan").board.aread()
    assert [each.text for each in board.items if each.author == "ana"] == ["By the manager."]


async def test_every_page_of_a_conversation_is_there_in_a_space(of: Any, server: SupabaseMemory, space: Studio) -> None:
    team = server.space(space.space_id).memory.conversation("team")
    asked = HumanMessage("Which kiln?", id="q")
    await team.aappend([asked, HumanMessage("The blue one.", id="a")], pack=await team.acontext(asked))
    await team.aindex()
    fact = await team.board.aadd("fact", "The kiln is blue.", actor="ana")
    async with Person(of(space.eve)) as person:
        for screen in SCREENS:
            if screen.name in ("doctor", "erase", "source", "turn", "messages", "profile_item"):
                continue
            given = {**asked_of(screen, "team"), "space": space.space_id, "item": fact}
            page = await person.page(screen.path, **given)
            if not screen.is_of_conversation and screen.name not in ("recall", "queue"):
                continue
            for name, attributes in page.elements:
                href = str(attributes.get("href") or attributes.get("hx-get") or "")
                if name == "a" and "thread=" in href:
                    assert "space=space%3A" in href, (screen.name, href)
        found = await person.page("/recall", space=space.space_id, q="kiln")
        assert "message 0" in found.text


async def test_a_server_opens_a_space_by_its_id_and_for_a_user(server: SupabaseMemory, space: Studio) -> None:
    async with Person(server, write=True) as person:
        assert "Enter a user" in (await person.page("/spaces")).text
        assert "Studio" in (await person.page("/spaces", user=space.ben)).text
        itself = await person.page(SPACE, space=space.space_id)
        assert "you are" not in itself.text
        assert "/spaces/leave" not in buttons(itself)
        assert "/spaces/member" in buttons(itself)
        bens = await person.page(SPACE, space=space.space_id, user=space.ben)
        assert "you are a contributor" in bens.text
        assert "/spaces/member" not in buttons(bens)
        await person.page(SPACE, 404, space=space.space_id, user=space.stranger)
        refused = await person.post("/spaces/create", {"name": "Shop"})
        assert (refused.status_code, "Enter a user" in Reader(refused.text).text) == (400, True)
        listed = await person.page("/", user=space.space_id)
        assert "of the space Studio" in listed.text
        by_another = server.space(space.space_id).memory.conversation("plan", agent_id=space.maya)
        await by_another.aappend([HumanMessage("By another agent.")])
        everybody = (await person.answer("/", agent=space.maya)).text
        assert "space=space%3A" in everybody
        await person.page("/queue", space=space.space_id)


async def test_hostile_words_stay_words(of: Any, server: SupabaseMemory, space: Studio, address: str) -> None:
    bad = f"{HOSTILE} \u202eשלום"
    users = [f"{space.maya}{HOSTILE}", f"{space.ben}{HOSTILE}"]
    made = await server.for_user(users[0]).spaces.acreate(bad, about=bad + "long " * 1_500)
    handle = server.for_user(users[0]).space(made.space_id)
    invitation = await handle.ainvite("contributor", uses=2)
    await server.for_user(users[1]).spaces.ajoin(invitation.token)
    for user in users:
        own = server.for_user(user).conversation(HOSTILE)
        await own.aappend([HumanMessage(bad, id=HOSTILE)])
        await own.acontribute(HOSTILE, quote=HOSTILE, to=made.space_id)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            "update memory.conversation_board_items set edited_by = %s, edited_at = now(), editor_kind = 'person'"
            " where user_id = %s", [bad.replace("\u202e", ""), made.space_id]
        )  # fmt: skip
    pages = []
    async with Person(of(users[0]), write=True, actor=HOSTILE) as person:
        named: dict[str, Any] = {"space": made.space_id}
        pages += [await person.answer(path, **named) for path in ("/spaces/space", "/spaces/erase", "/")]
        pages += [await person.answer(path) for path in ("/spaces", "/spaces/shared")]
        pages.append(await person.post("/spaces/invite", {"role": "reader", "uses": "1", "days": "1"}, **named))
        pages.append(await person.answer("/conversation/board", thread="board", **named))
        pages.append(await person.answer("/spaces/space", space=HOSTILE))
        pages.append(await person.post("/spaces/join", {"token": bad}))
        pages.append(await person.post("/spaces/create", {"name": bad * 100}))
    for page in pages:
        harmless(page.text)
        assert "\u202e" not in FIELDS.sub("", page.text), "but in a field, which stores what it shows"
        assert len(page.text) < LIGHT
    assert sum(HOSTILE in Reader(page.text).text for page in pages) >= 6


async def test_pages_stay_bounded(server: SupabaseMemory, address: str, space: Studio) -> None:
    """1,000 members with long names, 200 spaces of one user, and a board of 300 quotes."""
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("select set_config('search_path', '', false)")
        connection.execute(
            "insert into memory.memberships (user_id, space_id, role, granted_by)"
            " select 'member-' || n || repeat('x', 400), %s, 1, %s from generate_series(1, 997) n",
            [space.space_id, space.maya],
        )
        connection.execute(
            "with made as (insert into memory.spaces (user_id, name, about, created_by)"
            " select 'space:' || gen_random_uuid(), repeat('n', 195) || n, repeat('a', 8000), %s"
            " from generate_series(1, 200) n returning user_id)"
            " insert into memory.memberships (user_id, space_id, role, granted_by) select %s, user_id, 3, %s from made",
            [space.maya] * 3,
        )
    diary = server.for_user(space.ben).conversation("long")
    quotes = [f"Sentence {n} {'word ' * 90}end." for n in range(60)]
    await diary.aappend([HumanMessage(quote, id=f"n{n}") for n, quote in enumerate(quotes)])
    for n, quote in enumerate(quotes):
        await diary.acontribute(f"n{n}", quote=quote, to=space.space_id)
    async with Person(server.for_user(space.maya), write=True) as person:
        seen: set[str] = set()
        page = await person.answer(SPACE, space=space.space_id, members=-5)
        for _ in range(1_000 // PAGE + 1):
            assert len(page.text) < LIGHT
            read = Reader(page.text)
            seen |= {str(each["value"]) for each in read.all("input", name="member")}
            following = [each for each in read.all("a", rel="next") if str(each["href"]).endswith("#members")]
            if not following:
                break
            page = await person.http.get(str(following[0]["href"]))
        assert len(seen) == 1_000
        far = await person.page(SPACE, space=space.space_id, members=10**9, contributed=10**9, invitations=10**9)
        assert "There are no more items" in far.text
        listed = await person.answer("/spaces")
        assert len(listed.text) < LIGHT
        assert len(Reader(listed.text).all("a", class_="title")) == LISTED
    async with Person(server.for_user(space.ben), write=True) as person:
        page = await person.answer(SPACE, space=space.space_id)
        assert len(page.text) < LIGHT
        shared = await person.answer("/spaces/shared")
        assert len(shared.text) < LIGHT
        assert len(Reader(shared.text).all("a", rel="next")) == 1


def test_what_is_kept_is_a_sentence() -> None:
    assert retention_text(None) == retention_text(Retention(max_summary_age=None)) == "Everything is kept."
    assert retention_text(Retention(max_turns=1)) == "Kept: the newest 1 turn of a conversation, summaries for 90 days."
