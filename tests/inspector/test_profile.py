"""The page of a person: what is remembered and why, each change as it is stored, what is refused, and any size."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest

from langchain_supabase_memory import MemoryConfig, SupabaseMemory
from langchain_supabase_memory.inspector import live_updates
from langchain_supabase_memory.inspector.screens.profile import PAGES
from tests.each_case import each_case
from tests.inspector.profiles import fill, learn
from tests.inspector.test_screens import LIGHT
from tests.inspector.test_security import HOSTILE, harmless
from tests.inspector.visiting import Person, Reader, by_door, memory_of

PROFILE = "/profile"
MARCH = datetime(2026, 3, 3, 9, 30, tzinfo=UTC)
NOBODYS = "00000000-0000-4000-8000-000000000000"


@pytest.fixture(params=["server", "claims", "token"])
async def of(request: pytest.FixtureRequest, server: SupabaseMemory) -> AsyncIterator[Any]:
    """A user's memory: a server that names its user, and a signed-in user by both doors."""
    async with by_door(request, server, "data_api") as of_user:
        yield of_user


@pytest.fixture
def maya(server: SupabaseMemory, conn_string: str, user_id: str) -> str:
    """A user who said several things: what lasts, what changed, what they corrected, and what they said once."""

    def say(quote: str, value: str, days: int, **found: Any) -> None:
        learn(server, conn_string, user_id, quote, value, at=MARCH + timedelta(days=days), **found)

    say("I live in Manila.", "Manila", 0, kind="fact", subject="home")
    say("I moved to Cebu.", "Cebu", 60, kind="fact", subject="home")
    say("Always answer briefly.", "briefly", 1, kind="instruction", subject="answers", polarity=1)
    say("No, I said metric.", "metric", 2, subject="units", corrects=True)
    say("No coffee at night, ever.", "coffee", 3, subject="drinks", polarity=-1, condition="at night")
    say("Make it blue.", "blue", 4, subject="color", durable=False)
    for thread in ("a", "b"):
        say("Matte, please.", "matte", 5, subject="glaze", durable=False, thread=thread)
    return user_id


def item_of(server: SupabaseMemory, user_id: str, value: str) -> Any:
    states: Any = ("held", "proposed", "superseded")
    return next(each for each in server.for_user(user_id).profile.read(states=states) if each.value == value)


def values_of(server: SupabaseMemory, user_id: str, *states: Any) -> list[str]:
    return sorted(each.value for each in server.for_user(user_id).profile.read(states=states or ("held",)))


def order(text: str, *parts: str) -> None:
    places = [text.index(each) for each in parts]
    assert places == sorted(places), parts


async def test_everything_remembered_is_there_with_why_and_since_when(of: Any, maya: str) -> None:
    async with Person(of(maya)) as person:
        page = await person.page(PROFILE)
        assert not page.all("form", method="post"), "it is read-only"
        assert "Cebu" in page.text, "home: Cebu"
    text = page.text
    order(text, "What holds", "Instructions and constraints", "briefly", "Preferences", "metric", "Facts", "Cebu")
    order(text, "Cebu", "Not used yet 1", "blue", "What held before 1", "Manila")
    who = "they" if "row level security" not in text else "you"
    for reason in (
        f"{who} said that it lasts",
        f"{who} corrected it",
        f"{who} said it in two conversations",
        f"{who} said it once, and not that it lasts",
    ):
        assert reason in text
    assert "drinks (at night): not coffee" in text
    assert "held 3 Mar 09:30 to 2 May 09:30" in text, "both dates"
    assert "MemoryConfig(profile=True)" in text


async def test_a_quote_is_one_click_away_and_leads_to_its_message(of: Any, server: SupabaseMemory, maya: str) -> None:
    item = item_of(server, maya, "Cebu")
    async with Person(of(maya)) as person:
        page = await person.page(PROFILE)
        (link,) = [str(each["href"]) for each in page.all("a") if item.id in str(each.get("hx-get"))]
        for in_place in (True, False):
            shown = Reader((await person.http.get(link, headers={"hx-request": "true"} if in_place else {})).text)
            assert shown.words.count("I moved to Cebu.") == 1
            assert "2 May 09:30" in shown.text
            assert "What held when3 Mar 09:30 to 2 May 09:30home: Manila" in shown.text.replace(" home", "home")
            assert not shown.all("form", method="post")
        (message,) = [str(each["href"]) for each in shown.all("a") if "#m1" in str(each["href"])]
        assert "I moved to Cebu." in (await person.http.get(message)).text


async def test_nobody_reads_or_changes_another_persons_profile(
    of: Any, server: SupabaseMemory, maya: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_updates, "STREAM_SECONDS", 0.1)
    item = item_of(server, maya, "Cebu")
    async with Person(of(f"{maya}-other"), write=True) as person:
        for named in ("", maya):
            page = await person.page(PROFILE, user=named)
            assert "Nothing is remembered yet" in page.text
            assert "Cebu" not in page.text
            await person.page("/profile/item", 404, item=item.id, user=named)
            export = await person.answer("/profile/export", user=named)
            assert (export.status_code, "Cebu" in export.text) == (200, False)
            form = {"item": item.id, "pin": item.id, "value": "Iloilo", "sure": "1"}
            for path in ("correct", "mark", "delete"):
                assert (await person.post(f"/profile/{path}", form, user=named)).status_code == 404, path
            refused = await person.post(
                "/profile/consent", {"purpose": "profile", "do": "refuse", "sure": "1"}, user=named
            )
            assert refused.status_code == 303, "their own"
    assert "Cebu" in values_of(server, maya)
    assert server.for_user(maya).privacy.consents() == []


async def test_a_person_remembers_corrects_confirms_pins_and_deletes(
    of: Any, server: SupabaseMemory, maya: str
) -> None:
    memory = of(maya)
    async with Person(memory, write=True, actor="ana") as person:
        actor = "ana" if "with a server" in (await person.page(PROFILE)).text else maya
        made = await person.post("/profile/remember", {"text": " I am vegan ", "kind": "constraint", "subject": "diet"})
        assert made.status_code == 303
        vegan = item_of(server, maya, "I am vegan")
        assert made.headers["location"].endswith(f"#item-{vegan.id}")
        assert (vegan.kind, vegan.subject, vegan.basis, vegan.confirmed_by) == ("constraint", "diet", "person", actor)

        cebu = item_of(server, maya, "Cebu")
        given = {"item": cebu.id, "was": "Cebu", "value": "Iloilo"}
        assert (await person.post("/profile/correct", given)).status_code == 303
        assert "Iloilo" in values_of(server, maya)
        assert values_of(server, maya, "superseded") == ["Cebu", "Manila"]
        await person.post("/profile/correct", {"item": cebu.id, "was": "Cebu", "value": "Cebu\r\n"})
        assert "Iloilo" in values_of(server, maya), "what is unchanged is no correction"

        blue = item_of(server, maya, "blue")
        assert (await person.post("/profile/mark", {"confirm": blue.id})).status_code == 303
        assert item_of(server, maya, "blue").state == "held"
        assert "confirmed it" in (await person.page(PROFILE)).text
        for pinned in (True, False):
            await person.post("/profile/mark", {"pin" if pinned else "unpin": blue.id})
            assert item_of(server, maya, "blue").pinned == pinned
            assert ("Pinned" in (await person.page(PROFILE)).text) == pinned

        assert (await person.post("/profile/delete", {"item": blue.id})).status_code == 400, "it is asked first"
        assert (await person.post("/profile/delete", {"item": blue.id, "sure": "1"})).status_code == 303
        assert "blue" not in (await person.page(PROFILE)).text
        await person.page("/profile/item", 404, item=blue.id)
        for asked in ("/profile/correct", "/profile/delete"):
            form = {"item": blue.id, "value": "x", "sure": "1"}
            assert (await person.post(asked, form)).status_code == 404, "it has gone"


async def test_what_is_no_item_is_refused_with_the_next_action(of: Any, maya: str) -> None:
    async with Person(of(maya), write=True) as person:
        for form, status in (
            ({"text": "", "kind": "fact"}, 400),
            ({"text": "x" * 501, "kind": "fact"}, 400),
            ({"text": "x", "kind": "secret"}, 400),
            ({"text": "x", "kind": "fact", "subject": "s" * 201}, 400),
        ):
            assert (await person.post("/profile/remember", form)).status_code == status, form
        for named in ("", "x", "-" * 36, NOBODYS, "\0", HOSTILE):
            for path in ("correct", "mark", "delete"):
                form = {"item": named, "confirm": named, "value": "x", "sure": "1"}
                answer = await person.post(f"/profile/{path}", form)
                assert answer.status_code in (400, 404), (path, named)
            assert (await person.answer("/profile/item", item=named)).status_code in (400, 404), named
        for form in ({"purpose": "secrets", "do": "allow"}, {"do": "allow"}, {"purpose": "tone", "do": "refuse"}):
            assert (await person.post("/profile/consent", form)).status_code == 400, form


async def test_who_refuses_a_profile_has_none(of: Any, server: SupabaseMemory, maya: str) -> None:
    async with Person(of(maya), write=True, actor="ana") as person:
        page = await person.page(PROFILE)
        assert "Profile: on" in page.text
        actor = "ana" if "with a server" in page.text else maya
        for purpose in ("profile", "tone"):
            done = await person.post("/profile/consent", {"purpose": purpose, "do": "refuse", "sure": "1"})
            assert done.status_code == 303
        consents = server.for_user(maya).privacy.consents()
        assert [(each.purpose, each.allowed, each.actor) for each in consents] == [
            ("profile", False, actor),
            ("tone", False, actor),
        ]
        page = await person.page(PROFILE)
        assert "do not allow a profile" in page.text
        assert "Profile: off" in page.text
        assert "Nothing is remembered yet" in page.text
        assert "/profile/remember" not in {str(each["action"]) for each in page.all("form", method="post")}
        refused = await person.post("/profile/remember", {"text": "I am vegan", "kind": "fact"})
        assert refused.status_code == 400
        assert "consent" in Reader(refused.text).text
        await person.post("/profile/consent", {"purpose": "profile", "do": "allow"})
        assert (await person.post("/profile/remember", {"text": "I am vegan", "kind": "fact"})).status_code == 303


async def test_what_goes_is_said_of_each_purpose(of: Any, maya: str) -> None:
    async with Person(of(maya), write=True) as person:
        page = await person.page(PROFILE)
    told = page.text
    assert "nothing is derived for it" not in told, "every purpose is derived for"
    for gone in (
        "Everything on this page",
        "All topics",
        "All signals",
        "The tone of every message",
        "All usage by day",
    ):
        assert gone in told, gone


async def test_the_copy_has_every_item(of: Any, server: SupabaseMemory, maya: str, conn_string: str) -> None:
    fill(conn_string, maya, 450, "held")
    server.for_user(maya).privacy.consent("tone", False, actor="maya")
    async with Person(of(maya)) as person:
        answer = await person.answer("/profile/export")
    assert answer.headers["content-disposition"] == 'attachment; filename="profile.jsonl"'
    pages = [json.loads(line) for line in answer.text.splitlines()]
    assert [(each["purpose"], each["allowed"], each["by"]) for page in pages for each in page["consents"]] == [
        ("tone", False, "maya")
    ]
    rows = [row for page in pages for row in page["profile"]]
    assert len(rows) == len({row["id"] for row in rows}) == 450 + 7
    (cebu,) = [row for row in rows if row["value"] == "Cebu"]
    assert cebu["evidence"][0]["quote"] == "I moved to Cebu."


@each_case("state", ["held", "proposed", "superseded"])
async def test_five_thousand_items_are_read_page_by_page(
    server: SupabaseMemory, conn_string: str, user_id: str, state: Any
) -> None:
    fill(conn_string, user_id, 5_000, state)
    seen: list[str] = []
    async with Person(server.for_user(user_id), write=True) as person:
        page = await person.answer(PROFILE)
        size = PAGES[state][1]
        for _ in range(12):
            assert len(page.content) < LIGHT
            read = Reader(page.text)
            seen += [str(each["id"]) for each in read.all("li") if str(each.get("id")).startswith("item-")]
            (following,) = read.all("a", rel="next")
            page = await person.http.get(str(following["href"]))
        assert len(seen) == len(set(seen)) == 12 * size
        (first,) = Reader(page.text).all("a", rel="prev")
        assert Reader((await person.http.get(str(first["href"]))).text).text == (await person.page(PROFILE)).text
        form = next(str(each["action"]) for each in Reader(page.text).all("form", id="marked"))
        assert f"{PAGES[state][0]}=" in form, "who changes something returns to the page where they were"


async def test_a_page_that_is_no_page_begins_at_the_first_item(of: Any, maya: str) -> None:
    async with Person(of(maya), write=True) as person:
        plain = (await person.page(PROFILE)).text
        for wrong in (
            "x", "~~~", "1~fact~yesterday~" + NOBODYS, f"1~fact~2026-01-01~{NOBODYS}", f"2~fact~{MARCH.isoformat()}~{NOBODYS}",
            f"1~secret~{MARCH.isoformat()}~{NOBODYS}", f"1~fact~{MARCH.isoformat()}~{HOSTILE}", "\0" * 4, "9" * 5_000,
        ):  # fmt: skip
            page = await person.page(PROFILE, held=wrong, proposed=wrong, before=wrong)
            assert page.text == plain, wrong
        for wrong in (f"1~fact~{MARCH.isoformat()}~{'-' * 36}", f"0~fact~0001-01-01T00:00:00+00:00~{NOBODYS}"):
            assert (await person.answer(PROFILE, held=wrong)).status_code in (200, 400), wrong


async def test_a_server_names_whose_profile_it_is(server: SupabaseMemory, maya: str) -> None:
    async with Person(server, write=True, actor="ana") as person:
        assert "Enter a user" in (await person.page(PROFILE)).text
        refused = await person.post("/profile/remember", {"text": "x", "kind": "fact"})
        assert (refused.status_code, "Enter a user" in Reader(refused.text).text) == (400, True)
        assert (await person.answer("/profile/export")).status_code == 400
        page = await person.page(PROFILE, user=maya)
        assert "Cebu" in page.text
        for each in [*page.all("form", method="post"), *page.all("a", class_="button quiet")]:
            assert f"user={maya}" in str(each.get("action") or each.get("href"))
        done = await person.post("/profile/remember", {"text": "I am vegan", "kind": "fact"}, user=maya)
        assert f"user={maya}" in done.headers["location"]
        assert item_of(server, maya, "I am vegan").confirmed_by == "ana"
        assert "ana wrote it" in (await person.page(PROFILE, user=maya)).text
        assert (await person.answer(PROFILE, user="x" * 600)).status_code == 400


async def test_where_the_application_keeps_profiles_the_page_does_not_say_how(conn_string: str, user_id: str) -> None:
    async with memory_of(conn_string, user_id, profile=True) as memory, Person(memory) as person:
        assert memory._services.config == MemoryConfig(profile=True)
        assert "MemoryConfig" not in (await person.page(PROFILE)).text


async def test_topics_that_are_not_remembered_are_listed(of: Any, server: SupabaseMemory, maya: str) -> None:
    mine = server.for_user(maya)
    mine.privacy.opt_out("divorce", actor=maya)
    mine.conversation("t").opt_out("weight loss", actor=maya)
    async with Person(of(maya), write=True) as person:
        page = await person.page(PROFILE)
        assert "divorce" in page.text
        assert "weight loss in t" in page.text
        refused = await person.post("/profile/remember", {"text": "About my divorce", "kind": "fact"})
        assert refused.status_code == 400


async def test_hostile_words_stay_words(of: Any, server: SupabaseMemory, conn_string: str, user_id: str) -> None:
    bad, user = f"{HOSTILE} \u202eשלום", f"{user_id}{HOSTILE}"
    for durable in (True, False):
        for part in ("one", "another"):
            learn(
                server, conn_string, user, f"{bad} {part}", f"{bad} {part}", thread=HOSTILE, subject=f"{bad}{durable}",
                condition=bad, durable=durable, corrects=durable,
            )  # fmt: skip
    mine = server.for_user(user)
    item = mine.profile.remember(HOSTILE, kind="instruction", actor=HOSTILE)
    mine.profile.pin(item)
    mine.privacy.opt_out("kangaroo" + HOSTILE, actor=HOSTILE)
    mine.privacy.consent("tone", False, actor=HOSTILE)
    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "update memory.profile_items set author = %s, agent_id = %s where user_id = %s", [HOSTILE, HOSTILE, user]
        )
    async with Person(of(user), write=True, actor=HOSTILE) as person:
        pages = [await person.answer(PROFILE), await person.answer(PROFILE, held=HOSTILE, user=HOSTILE)]
        for each in mine.profile.read(states=("held", "proposed", "superseded")):
            pages += [await person.answer("/profile/item", item=each.id, part=part) for part in (True, False)]
        pages.append(await person.answer("/profile/item", item=HOSTILE))
        pages.append(await person.post("/profile/remember", {"text": bad * 50, "kind": HOSTILE}))
        pages.append(await person.post("/profile/consent", {"purpose": HOSTILE}))
    for page in pages:
        harmless(page.text)
    assert Reader(pages[0].text).text.count(HOSTILE) >= 10
    assert "\u202e" not in "".join(Reader(pages[0].text).words)


async def test_an_open_page_is_told_of_a_change(
    of: Any, server: SupabaseMemory, maya: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live_updates, "STREAM_SECONDS", 0.1)
    async with Person(of(maya)) as person:
        page = await person.page(PROFILE)
        events = str(page.all("body")[0]["data-events"])
        assert "event: changed" not in (await person.http.get(events)).text
        server.for_user(maya).profile.remember("I am vegan")
        assert "event: changed" in (await person.http.get(events)).text
        later = await person.page(PROFILE, held=f"1~fact~{MARCH.isoformat()}~{NOBODYS}")
        assert "data-events" not in later.all("body")[0], "a later page is no list of what is new"
