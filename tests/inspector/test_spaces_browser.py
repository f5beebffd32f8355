"""The screens of spaces in a real Chromium: themes, widths, by keyboard alone, live, hostile, and without scripts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import quote

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from tests.inspector.browsing import Served, faint, served, tab_to, unnamed
from tests.inspector.sharing import Studio, studio
from tests.inspector.test_security import HOSTILE
from tests.inspector.visiting import memory_of
from tests.services.postgres import Cluster

if TYPE_CHECKING:
    from playwright.sync_api import Browser

PAGES = {
    "spaces": "/spaces", "space": "/spaces/space?space={0}", "erase": "/spaces/erase?space={0}",
    "shared": "/spaces/shared", "conversations": "/?space={0}", "timeline": "/conversation?space={0}&thread=plan",
    "board": "/conversation/board?space={0}&thread=board", "recall": "/recall?space={0}", "queue": "/queue?space={0}",
}  # fmt: skip


@pytest.fixture(scope="module")
def address(cluster: Cluster, shared: str) -> str:
    return cluster.conn_string(shared)


@pytest.fixture
def server(address: str) -> Iterator[SupabaseMemory]:
    with memory_of(address) as made:
        yield made


@pytest.fixture
def space(address: str) -> Studio:
    return studio(address)


@pytest.fixture
def inspector(server: SupabaseMemory, space: Studio, chromium: Browser) -> Iterator[Served]:
    """What the space's manager sees, who may write, and nothing on the console at the end."""
    diary = server.for_user(space.maya).conversation("diary")
    diary.append([HumanMessage("The hotel wants 64 bowls.", id="m1")])
    diary.contribute("m1", quote="The hotel wants 64 bowls.", to=space.space_id)
    server.for_user(space.maya).space(space.space_id).invite(uses=5)
    with served(server.for_user(space.maya), chromium, write=True, actor="maya") as made:
        yield made
    assert made.said == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_can_be_read_found_and_is_narrow(inspector: Served, space: Studio, scheme: str) -> None:
    page = inspector.open("/", viewport={"width": 400, "height": 800}, color_scheme=scheme)
    for name, path in PAGES.items():
        page.goto(inspector.address + path.format(quote(space.space_id)))
        if name == "space":
            for each in page.locator("details.act > summary").all():
                each.click()
        assert page.evaluate("document.documentElement.scrollWidth") <= 400, name
        assert page.get_by_role("heading", level=1).count() == 1, name
        assert faint(page) == [], name
        assert unnamed(page) == [], name


def test_a_space_is_made_and_shared_by_keyboard_alone(inspector: Served, server: SupabaseMemory, space: Studio) -> None:
    page = inspector.open("/spaces", permissions=["clipboard-read", "clipboard-write"])
    tab_to(page, "Create a space")
    page.keyboard.press("Enter")
    tab_to(page, "Name")
    page.keyboard.type("The shop")
    tab_to(page, "Create")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="The shop").wait_for()
    tab_to(page, "Invite …")
    page.keyboard.press("Enter")
    tab_to(page, "Makes a")
    page.keyboard.press("c")
    tab_to(page, "Make an invitation")
    page.keyboard.press("Enter")
    page.get_by_role("heading", name="Invitation").wait_for()
    assert page.locator("#token").inner_text() not in page.url
    tab_to(page, "Copy")
    page.keyboard.press("Enter")
    page.get_by_role("button", name="Copied").wait_for()
    joined = server.for_user(space.eve).spaces.join(page.evaluate("navigator.clipboard.readText()"))
    assert (joined.name, joined.role) == ("The shop", "contributor")
    page.get_by_role("link", name="Back to the space").click()
    tab_to(page, f"Change … {space.eve}")
    page.keyboard.press("Enter")
    tab_to(page, "Remove from the space")
    page.keyboard.press("Enter")
    page.locator("#space-members", has_text=space.eve).wait_for(state="detached")
    tab_to(page, "Erase …")
    page.keyboard.press("Enter")
    page.get_by_text("1 membership").wait_for()
    tab_to(page, "Erase the space")
    page.keyboard.press("Enter")
    page.wait_for_url("**/spaces")
    assert [each.name for each in server.for_user(space.maya).spaces.list()] == ["Studio"]


def test_roles_and_quotes_change_and_the_page_follows(inspector: Served, server: SupabaseMemory, space: Studio) -> None:
    page = inspector.open(PAGES["space"].format(quote(space.space_id)))
    row = page.locator("#space-members li", has_text=space.eve)
    row.locator("summary", has_text="Change").click()
    row.get_by_label("Role").select_option("contributor")
    row.get_by_role("button", name="Set the role").click()
    page.locator("#space-members li", has_text=space.eve).get_by_text("contributor", exact=True).first.wait_for()
    quote_of_ben = page.locator(f"#item-{space.item}")
    quote_of_ben.locator("summary").click()
    quote_of_ben.get_by_role("button", name="Withdraw").click()
    quote_of_ben.wait_for(state="detached")
    page.get_by_role("link", name="its message").click()
    page.wait_for_url("**/conversation?*thread=diary*at=0*")
    page.go_back()
    page.evaluate("window.kept = true")
    token = str(server.for_user(space.maya).space(space.space_id).invite().token)
    server.for_user(space.stranger).spaces.join(token)
    page.locator("#space-members", has_text=space.stranger).wait_for()
    assert page.evaluate("window.kept") is True, "the page was not loaded anew"


def test_hostile_words_stay_words_and_work_without_scripts(
    server: SupabaseMemory, space: Studio, chromium: Browser
) -> None:
    user = f"{space.stranger}{HOSTILE}"
    server.for_user(user).spaces.create(HOSTILE, about=HOSTILE)
    with served(server.for_user(user), chromium, write=True) as inspector:
        for scripts in (True, False):
            page = inspector.open("/spaces", java_script_enabled=scripts)
            page.get_by_role("link", name=HOSTILE).click()
            page.get_by_role("heading", name=HOSTILE).wait_for()
            page.locator("summary", has_text="Change …").first.click()
            assert page.get_by_label("Name").input_value() == HOSTILE
            page.get_by_label("What it is for").fill("Plain.")
            page.get_by_role("button", name="Save").click()
            page.locator("#standing", has_text="Plain.").wait_for()
            assert page.locator("img").count() == 0
        assert inspector.said == []
    (info,) = server.for_user(user).spaces.list()
    assert (info.name, info.about) == (HOSTILE, "Plain.")
