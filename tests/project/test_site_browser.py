"""The built site in a real Chromium: its search, both schemes, the width of a phone. `make docs` builds it first."""

from __future__ import annotations

import threading
import tomllib
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
SITE = ROOT / ".site"
PHONE, DESK = {"width": 400, "height": 900}, {"width": 1280, "height": 900}

SEARCHES = {
    "quickstart": "first-agent",
    "RLS": "users-and-security",
    "row level security": "users-and-security",
    "GDPR": "privacy",
    "privacy": "privacy",
    "multi-tenant": "users-and-security",
    "JWT": "users-and-security",
    "delete user": "retention",
    "embeddings": "embedders",
    "pgvector": "setup",
    "pricing": "costs",
    "cost": "costs",
    "LangGraph": "langgraph-server",
    "checkpointer": "comparison",
    "middleware": "agents",
    "FastAPI": "chat-service",
    "streaming": "agents",
    "MCP": "mcp",
    "migration": "setup",
    "self-hosted": "setup",
    "async": "getting-started",
    "token limit": "context",
    "export": "import-and-export",
    "mem0": "moving-in",
    "Citus": "citus",
    "docker": "workers-in-production",
    "production": "workers-in-production",
    "troubleshooting": "getting-started",
    "chat history": "history",
    "benchmark": "comparison",
}
"""What people type, and the page that is to come first."""


class Quiet(SimpleHTTPRequestHandler):
    """Serves files, and logs nothing."""

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        """Log nothing."""


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """Of the built site."""
    assert (SITE / "search.json").is_file(), "the site is not built: run `make docs`"
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(SITE)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    server.server_close()
    thread.join()


def opened(browser: Browser, url: str, *, scheme: Any = "light", viewport: Any = DESK) -> Page:
    """A page, whose script has no error."""
    page = browser.new_context(color_scheme=scheme, viewport=viewport).new_page()
    page.on("pageerror", lambda error: pytest.fail(str(error)))
    page.goto(url)
    return page


def test_what_people_type_finds_its_page_first(chromium: Browser, address: str) -> None:
    page = opened(chromium, f"{address}/index.html")
    field = page.get_by_role("combobox", name="Search")
    for _ in range(40):  # until the script listens
        page.keyboard.press("Control+k")
        page.wait_for_timeout(250)
        if field.is_visible():
            break
    first = page.get_by_role("dialog").get_by_role("option").first
    misses = {}
    for query, expected in SEARCHES.items():
        field.fill("")
        first.wait_for(state="detached")
        field.fill(query)
        first.wait_for()
        found = urlsplit(str(first.get_attribute("href"))).path
        if found != f"/{expected}.html":
            misses[query] = found
    assert not misses


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_pages_fit_a_phone_in_both_schemes(chromium: Browser, address: str, scheme: str) -> None:
    grounds = set()
    for name in ("index", "recall", "setup", "comparison", "api/memory", "sql/messages", "notebooks/06_recall", "404"):
        page = opened(chromium, f"{address}/{name}.html", scheme=scheme, viewport=PHONE)
        assert page.evaluate("document.documentElement.scrollWidth <= window.innerWidth"), name
        grounds.add(page.evaluate("getComputedStyle(document.body).backgroundColor"))
        page.context.close()
    (ground,) = grounds
    assert (ground == "rgb(255, 255, 255)") is (scheme == "light")


def test_blocks_need_no_scrolling_on_a_desk(chromium: Browser, address: str) -> None:
    for name in ("index", "agents", "recall", "worker", "command-line", "sql/messages"):
        page = opened(chromium, f"{address}/{name}.html")
        wide = page.evaluate("[...document.querySelectorAll('pre')].filter(e => e.scrollWidth > e.clientWidth).length")
        assert not wide, name
        page.context.close()


def test_a_page_leads_to_its_neighbors_and_names_the_release(chromium: Browser, address: str) -> None:
    page = opened(chromium, f"{address}/setup.html")
    assert page.get_by_role("link", name="Previous: ").get_attribute("href") is not None
    page.get_by_role("link", name="Next: ").click()
    page.wait_for_url(f"{address}/agents.html")
    release = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
    assert f"langchain-supabase-memory {release}" in page.locator("footer").inner_text()


def test_an_address_that_does_not_exist_leads_on(chromium: Browser, address: str) -> None:
    page = opened(chromium, f"{address}/404.html")
    page.get_by_role("article").get_by_role("link", name="Quickstart").click()
    page.wait_for_url(f"{address}/first-agent.html")


def test_notebooks_are_pages_with_their_output(chromium: Browser, address: str) -> None:
    page = opened(chromium, f"{address}/notebooks.html")
    page.get_by_role("article").get_by_role("link", name="06_recall").click()
    page.get_by_text("692 chunks, through message 691").wait_for()
    page.locator(".notebook-output svg").first.wait_for()


def test_the_reference_has_an_argument_a_line_and_no_twin(chromium: Browser, address: str) -> None:
    page = opened(chromium, f"{address}/api/memory.html")
    names = [each.strip("¶\n ") for each in page.locator("article h3").all_inner_texts()]
    assert "append" in names
    assert "aappend" not in names
    page.get_by_text("Async twin: await aappend(...)").wait_for()
    signature = page.locator("h3", has_text="append").first.locator("xpath=following::pre[1]").inner_text()
    arguments = [line for line in signature.splitlines() if line.startswith("    ")]
    assert len(arguments) > 4
    assert all(line.count(": ") <= 1 for line in arguments)
