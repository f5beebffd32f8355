"""`examples/web_page` in a real Chromium: two users sign in, chat through the service, and follow their own boards.

Supabase's Realtime does not run here: the page's socket gets no answer, and the page polls for the board.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import psycopg
import pytest

from langchain_supabase_memory import SupabaseMemory
from tests.project.test_examples_fastapi import QUESTIONS, USERS, service
from tests.project.test_examples_page import page
from tests.services.postgres import free_port
from tests.services.project import PUBLISHABLE, Project

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.timeout(300)  # servers start first, on a machine that may be busy

HOSTILE = '<img src="x" onerror="document.title = 1"> My glaze is blue.'


@pytest.fixture(scope="module")
def address(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the page, with the service beside it."""
    port, folder = free_port(), tmp_path_factory.mktemp("page")
    of_service = {"SUPABASE_PUBLISHABLE_KEY": PUBLISHABLE, "PAGE_ORIGIN": f"http://127.0.0.1:{port}"}
    with (
        service(folder, SUPABASE_URL=project.url, **of_service) as url,
        page(folder, port=port, SUPABASE_URL=project.url, SERVICE_URL=url) as (served, _),
    ):
        yield served


class Visitor:
    """Somebody at the page, in a browser of their own.

    Attributes:
        page: What they see.
        trouble: What the browser's console said, but for the socket that nothing answers.
    """

    def __init__(self, chromium: Browser, address: str, **settings: Any) -> None:
        self.page: Page = chromium.new_context(**settings).new_page()
        self.page.set_default_timeout(30_000)
        self.trouble: list[str] = []
        self.page.on("pageerror", lambda error: self.trouble.append(str(error)))
        self.page.on(
            "console",
            lambda said: (
                self.trouble.append(said.text)
                if said.type == "error" and "/realtime/v1/websocket" not in said.text
                else None
            ),
        )
        self.page.goto(address)

    def signs_in(self, email: str, password: str) -> None:
        self.page.get_by_placeholder("E-mail").fill(email)
        self.page.get_by_placeholder("Password").fill(password)
        self.page.get_by_role("button", name="Sign in").click()

    def says(self, text: str, place: int) -> str:
        """Say something, and wait for the answer, which is the message of this number."""
        self.page.get_by_placeholder("Say something").fill(text)
        self.page.get_by_role("button", name="Say", exact=True).click()
        answer = self.page.locator("#messages li:not(.waiting)").nth(place)
        answer.wait_for()
        return str(answer.inner_text())

    def messages(self) -> list[str]:
        return list(self.page.locator("#messages li").all_inner_texts())


def test_two_people_chat_read_and_follow_their_boards(
    chromium: Browser, address: str, project: Project, user_id: str
) -> None:
    visitors = {}
    for name in USERS:
        project.passwords[f"{name}@example.com"] = (f"{user_id}-{name}", f"secret of {name}")
        visitors[name] = Visitor(chromium, address)
        visitors[name].signs_in(f"{name}@example.com", f"secret of {name}")
    for name, said in USERS.items():
        visitors[name].says(said, 1)
        assert said in visitors[name].says(QUESTIONS[name], 3)
    for name, said in USERS.items():
        visitor = visitors[name]
        visitor.page.locator("#board li", has_text=said).first.wait_for()
        shown = visitor.messages()
        assert len(shown) == 4
        assert (shown[0], shown[2]) == (f"user: {said}", f"user: {QUESTIONS[name]}")
        assert all(each.startswith("assistant: ") for each in shown[1::2])
        (others,) = (text for other, text in USERS.items() if other != name)
        assert others not in visitor.page.inner_text("body")
        assert visitor.page.inner_text("#trouble") == ""
        assert visitor.trouble == []
    # Who comes back is still signed in, and what was said is read anew; it is text, and no page.
    maya = visitors["maya"]
    maya.page.reload()
    maya.page.locator("#messages li").nth(3).wait_for()
    maya.says(HOSTILE, 5)
    assert maya.messages()[4] == f"user: {HOSTILE}"
    maya.page.locator("#board li", has_text="My glaze is blue.").first.wait_for()
    assert maya.page.locator("#messages img, #board img").count() == 0
    assert maya.page.title() == "Chat"


def test_who_gives_another_password_is_told_so(chromium: Browser, address: str, project: Project, user_id: str) -> None:
    project.passwords["ana@example.com"] = (user_id, "right")
    visitor = Visitor(chromium, address)
    visitor.signs_in("ana@example.com", "wrong")
    visitor.page.get_by_role("alert").filter(has_text="Invalid login credentials").wait_for()
    assert not visitor.page.get_by_placeholder("Say something").is_visible()


@pytest.mark.parametrize(("width", "scheme"), [(1280, "light"), (400, "dark")])
def test_a_summary_is_made_at_once_and_what_it_spares_is_told(
    chromium: Browser, address: str, project: Project, conn_string: str, user_id: str, width: int, scheme: str
) -> None:
    project.passwords["ana@example.com"] = (user_id, "right")
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        studio = memory.conversation("studio")
        for number in range(3):
            studio.add_turn(f"Which kiln is number {number}? " + "It fires at cone six. " * 40, "The blue one.")
        visitor = Visitor(
            chromium, address, viewport={"width": width, "height": 800}, color_scheme=scheme, reduced_motion="reduce"
        )
        page = visitor.page
        visitor.signs_in("ana@example.com", "right")
        state, button = page.get_by_role("status"), page.get_by_role("button", name="Summarize now")
        state.filter(has_text="nothing is spared yet").wait_for()
        for number in range(3, 40):
            studio.add_turn(f"Which kiln is number {number}? " + "It fires at cone six. " * 40, "The blue one.")
        page.reload()
        state.filter(has_text="tokens spared").wait_for()
        page.route("**/summarize?*", slow_down)
        button.click()
        state.filter(has_text="A summary is being made").wait_for()
        assert button.is_disabled()
        assert state.get_attribute("aria-busy") is not None
        state.filter(has_text="tokens spared").wait_for()
        told = re.match(r"([\d,]+) tokens spared: .* has ([\d,]+) instead of ([\d,]+)\.", state.inner_text())
        assert told is not None
        spared, sent, total = (int(each.replace(",", "")) for each in told.groups())
        assert spared == total - sent > sent
        assert button.is_enabled()
        assert state.get_attribute("aria-busy") is None
        assert studio.summaries.list()
        # Nothing is cut off, and what a person presses can be pressed with a thumb.
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        box = button.bounding_box()
        assert box is not None
        assert box["height"] >= 44
        assert box["x"] + box["width"] <= width
        if folder := os.environ.get("SCREENSHOTS"):
            page.screenshot(path=f"{folder}/page-{width}-{scheme}.png", full_page=True)
        # A worker at the conversation is marked, too.
        with psycopg.connect(conn_string, autocommit=True) as connection:
            connection.execute(
                "insert into memory_private.work (user_id, conversation_id, worker, lease_until)"
                " select user_id, id, 'w', now() + interval '1 minute' from memory.conversations where user_id = %s"
                " on conflict (user_id, conversation_id) do update set worker = 'w', lease_until = excluded.lease_until",
                [user_id],
            )
            state.filter(has_text="A worker brings the memory up to date").wait_for()
            assert button.is_disabled()
            connection.execute("delete from memory_private.work where user_id = %s", [user_id])
            state.filter(has_text="tokens spared").wait_for()
        assert visitor.trouble == []
        assert page.inner_text("#trouble") == ""
        page.get_by_role("button", name="New conversation").click()
        page.locator("#empty").wait_for()
        assert not button.is_visible(), "there is nothing to summarize"


def test_words_stay_where_they_belong_when_somebody_is_quick(
    chromium: Browser, address: str, project: Project, conn_string: str, user_id: str
) -> None:
    project.passwords["ana@example.com"] = (user_id, "right")
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=None) as memory:
        for name in ("studio", "kiln", "loom"):
            memory.conversation(name).add_turn(f"About the {name}.", "Yes.")
    visitor = Visitor(chromium, address)
    page = visitor.page
    visitor.signs_in("ana@example.com", "right")
    page.locator("#messages li", has_text="About the studio.").wait_for()
    # The conversation that was opened first answers last.
    held: list[Route] = []
    page.route(
        "**/rpc/memory_read",
        lambda route: held.append(route) if '"kiln"' in (route.request.post_data or "") else route.continue_(),
    )
    for name in ("kiln", "loom"):
        page.locator("#conversations button", has_text=name).click()
    page.locator("#messages li", has_text="About the loom.").wait_for()
    with page.expect_response("**/rpc/memory_read"):
        held.pop().continue_()
    page.wait_for_timeout(300)
    assert "About the loom." in visitor.messages()[0]
    assert page.locator("#conversations [aria-current=true]").inner_text() == "About the loom."
    # While an answer is on its way, the next message can be written, and is not sent.
    page.route("**/stream?*", lambda route: held.append(route))
    box, button = page.get_by_placeholder("Say something"), page.get_by_role("button", name="Say", exact=True)
    for text in ("My loom is of birch.", "What is my loom of?"):
        box.fill(text)
        box.press("Enter")
    page.locator("#messages li.waiting").wait_for()
    (asked,) = held
    asked.continue_()
    page.locator("#messages li:not(.waiting)").nth(3).wait_for()
    assert [each for each in visitor.messages() if each.startswith("user: ")][1:] == ["user: My loom is of birch."]
    assert box.input_value() == "What is my loom of?"
    # What the service never heard is not lost.
    page.unroute("**/stream?*")
    page.route("**/stream?*", lambda route: route.abort())
    assert button.is_enabled()
    box.press("Enter")
    page.locator("#trouble", has_text="fetch").wait_for()
    assert box.input_value() == "What is my loom of?"
    assert len(visitor.messages()) == 4
    assert button.is_enabled()


def test_the_page_shows_nothing_of_who_was_signed_in_before(
    chromium: Browser, address: str, project: Project, user_id: str
) -> None:
    for name in USERS:
        project.passwords[f"{name}@example.com"] = (f"{user_id}-{name}", f"secret of {name}")
    here = Visitor(chromium, address)
    here.signs_in("maya@example.com", "secret of maya")
    here.says(USERS["maya"], 1)
    other = here.page.context.new_page()  # another tab of the same browser
    other.goto(address)
    other.locator("#messages li", has_text=USERS["maya"]).first.wait_for()
    here.page.get_by_role("button", name="Sign out").click()
    other.get_by_placeholder("Password").wait_for()
    assert "E-47" not in other.inner_text("body")
    here.signs_in("noor@example.com", "secret of noor")
    other.get_by_placeholder("Say something").fill(USERS["noor"])
    other.get_by_placeholder("Say something").press("Enter")
    other.locator("#messages li:not(.waiting)").nth(1).wait_for()
    assert other.locator("#messages li").first.inner_text() == f"user: {USERS['noor']}"
    assert "E-47" not in here.page.inner_text("body") + other.inner_text("body")


def test_the_page_says_why_the_service_refuses(chromium: Browser, address: str, project: Project, user_id: str) -> None:
    project.passwords["ana@example.com"] = (user_id, "right")
    visitor = Visitor(chromium, address)
    visitor.signs_in("ana@example.com", "right")
    box = visitor.page.get_by_placeholder("Say something")
    box.fill("   ")
    box.press("Enter")
    assert not box.evaluate("each => each.validity.valid")
    assert visitor.messages() == []
    too_long = "x" * 20_001
    box.evaluate("(each, text) => { each.value = text }", too_long)  # what no person can type
    box.press("Enter")
    visitor.page.get_by_role("alert").filter(has_text="at most 20000 characters").wait_for()
    assert box.input_value() == too_long


def test_a_page_that_is_opened_while_the_database_is_away_is_there_when_it_is_back(
    chromium: Browser, address: str, project: Project, conn_string: str, user_id: str
) -> None:
    project.passwords["ana@example.com"] = (user_id, "right")
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("studio").add_turn(USERS["maya"], "Yes.")
        memory.conversation("studio").board.revise()
    visitor = Visitor(chromium, address)
    page = visitor.page
    away = {"code": "PGRST000", "message": "Database connection error. Retrying the connection."}
    page.route("**/rest/v1/**", lambda route: route.fulfill(status=503, json=away))
    visitor.signs_in("ana@example.com", "right")
    page.get_by_role("alert").filter(has_text="Database connection error").wait_for()
    page.unroute("**/rest/v1/**")
    page.locator("#messages li", has_text=USERS["maya"]).wait_for()
    page.locator("#board li", has_text=USERS["maya"]).wait_for()
    page.locator("#trouble", has_text=re.compile("^$")).wait_for(state="attached")
    # What is shown stays while the database is away, and so does what is written.
    page.route("**/rest/v1/**", lambda route: route.fulfill(status=503, json=away))
    page.get_by_role("alert").filter(has_text="Database connection error").wait_for()
    assert len(visitor.messages()) == 2
    page.unroute("**/rest/v1/**")
    page.locator("#trouble", has_text=re.compile("^$")).wait_for(state="attached")


def test_what_fails_for_who_has_signed_out_is_shown_to_nobody(
    chromium: Browser, address: str, project: Project, user_id: str
) -> None:
    project.passwords["ana@example.com"] = (user_id, "right")
    visitor = Visitor(chromium, address)
    page = visitor.page
    visitor.signs_in("ana@example.com", "right")
    page.locator("#empty").wait_for()
    held: list[Route] = []
    page.route("**/rest/v1/**", lambda route: held.append(route))
    with page.expect_request("**/rest/v1/**"):  # the page looks for the worker every three seconds
        pass
    page.get_by_role("button", name="Sign out").click()
    page.get_by_placeholder("Password").wait_for()
    assert held
    for route in held:
        route.fulfill(status=503, json={"code": "PGRST000", "message": "Database connection error."})
    page.evaluate("() => new Promise((resolve) => setTimeout(resolve, 500))")
    assert page.locator("#trouble").inner_text() == ""


def slow_down(route: Route) -> None:
    """Let a request go on after half a second, in which the page shows what it waits for."""
    time.sleep(0.5)
    route.continue_()
