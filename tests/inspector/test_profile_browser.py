"""The page of a person in a real Chromium: themes, widths, by keyboard alone, live, and without scripts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from langchain_supabase_memory import SupabaseMemory
from tests.inspector.browsing import Served, faint, served, tab_to
from tests.inspector.profiles import learn
from tests.inspector.test_security import HOSTILE
from tests.inspector.visiting import memory_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture
def server(conn_string: str) -> Iterator[SupabaseMemory]:
    with memory_of(conn_string) as made:
        yield made


@pytest.fixture
def maya(server: SupabaseMemory, conn_string: str, user_id: str) -> str:
    """A user who said what lasts, what changed, and something once."""
    learn(server, conn_string, user_id, "I live in Manila.", "Manila", kind="fact", subject="home")
    learn(server, conn_string, user_id, "I moved to Cebu.", "Cebu", kind="fact", subject="home")
    learn(server, conn_string, user_id, "Make it blue.", "blue", subject="color", durable=False)
    server.for_user(user_id).profile.remember(f"I am vegan {HOSTILE} " + "long" * 90, kind="constraint", actor=HOSTILE)
    server.for_user(user_id).privacy.opt_out("divorce", actor=HOSTILE)
    return user_id


@pytest.fixture
def inspector(server: SupabaseMemory, maya: str, chromium: Browser) -> Iterator[Served]:
    """What the user sees, who may write, and nothing on the console at the end."""
    with served(server.for_user(maya), chromium, write=True, actor="maya") as made:
        yield made
    assert made.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_can_be_read_found_and_is_narrow(inspector: Served, scheme: str) -> None:
    page = inspector.open("/profile", viewport={"width": 400, "height": 800}, color_scheme=scheme)
    quotes = page.locator("#profile-list li", has_text="home: Cebu").get_by_role("link", name="Quotes, edit")
    address = str(quotes.get_attribute("href"))
    quotes.click()
    page.get_by_text("I moved to Cebu.").wait_for()
    for each in page.locator("details > summary:visible").all():
        each.click()
    for name in ("list", "item"):
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, name
        assert page.get_by_role("heading", level=1).count() == 1, name
        assert faint(page) == [], name
        for element in page.locator("a:visible, button:visible, input:visible, select:visible, textarea:visible").all():
            if element.get_attribute("aria-hidden") != "true":
                named = element.aria_snapshot().strip("- ").partition(" ")[2]
                assert named, (name, element.evaluate("e => e.outerHTML"))
        assert page.locator("img").count() == 0, "words stay words"
        page.goto(inspector.address + address)


def test_a_profile_is_kept_by_keyboard_alone(inspector: Served, server: SupabaseMemory, maya: str) -> None:
    page = inspector.open("/profile")
    mine = server.for_user(maya)
    tab_to(page, "Remember something")
    page.keyboard.press("Enter")
    tab_to(page, "What to remember")
    page.keyboard.type("Prices are in pesos")
    tab_to(page, "Kind")
    page.keyboard.type("inst")
    tab_to(page, "Remember")
    page.keyboard.press("Enter")
    page.locator("#profile-list").get_by_text("Prices are in pesos").first.wait_for()
    assert "instruction" in {each.kind for each in mine.profile.read()}
    tab_to(page, "Pin Cebu")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Pinned").wait_for()
    tab_to(page, "Quotes, edit of Cebu")
    page.keyboard.press("Enter")
    tab_to(page, "What is right")
    page.keyboard.press("Control+A")
    page.keyboard.type("Iloilo")
    tab_to(page, "Correct")
    page.keyboard.press("Enter")
    page.locator("#profile-list").get_by_text("Iloilo").first.wait_for()
    tab_to(page, "Confirm blue")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Not used yet").wait_for(state="detached")
    tab_to(page, "Quotes, edit of blue")
    page.keyboard.press("Enter")
    page.get_by_text("Make it blue.").wait_for()
    tab_to(page, "Delete … blue")
    page.keyboard.press("Enter")
    tab_to(page, "Delete it blue")
    page.keyboard.press("Enter")
    page.get_by_text("blue", exact=True).wait_for(state="detached")
    assert "blue" not in {each.value for each in mine.profile.read()}
    tab_to(page, "Switch off … profile")
    page.keyboard.press("Enter")
    tab_to(page, "Switch off profile")
    page.keyboard.press("Enter")
    page.get_by_text("Nothing is remembered yet").wait_for()
    assert mine.profile.read() == []
    tab_to(page, "Switch on profile")
    page.keyboard.press("Enter")
    page.get_by_text("Remember something").wait_for()


def test_an_open_page_follows_and_the_copy_is_a_file(
    inspector: Served, server: SupabaseMemory, maya: str, tmp_path: Path
) -> None:
    page = inspector.open("/profile")
    page.evaluate("window.kept = true")
    server.for_user(maya).profile.remember("Prices are in pesos")
    page.locator("#profile-list").get_by_text("Prices are in pesos").first.wait_for()
    assert page.evaluate("window.kept") is True, "the page was not loaded anew"
    with page.expect_download() as download:
        page.get_by_role("link", name="Download it").click()
    path = tmp_path / download.value.suggested_filename
    download.value.save_as(path)
    pages = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    values = [item["value"] for each in pages for item in each["profile"]]
    assert (path.name, len(values)) == ("profile.jsonl", 5)


def test_it_works_without_scripts(server: SupabaseMemory, maya: str, chromium: Browser) -> None:
    with served(server.for_user(maya), chromium, write=True) as inspector:
        page = inspector.open("/profile", java_script_enabled=False)
        page.get_by_role("link", name="Quotes, edit of Cebu").click()
        page.get_by_text("I moved to Cebu.").wait_for()
        page.get_by_label("What is right").fill("Iloilo")
        page.get_by_role("button", name="Correct").click()
        page.locator("#profile-list").get_by_text("Iloilo").first.wait_for()
        page.locator("summary", has_text="What held before").click()
        page.get_by_role("button", name="It holds again Manila").click()
        page.wait_for_url("**/profile#item-*")
        page.locator("summary", has_text="Delete … blue").click()
        page.get_by_role("button", name="Delete it blue").click()
        page.get_by_role("heading", name="Not used yet").wait_for(state="detached")
    values = {each.value for each in server.for_user(maya).profile.read()}
    assert "Manila" in values
    assert "blue" not in values
