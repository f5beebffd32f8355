"""A real browser for a real server: Chromium, driven by Playwright, and the inspector on its own port."""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import uvicorn

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.inspector import application
from tests.inspector.visiting import TOKEN
from tests.services.postgres import free_port

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

_CONTROL = re.compile(r"\s*- '?(?:link|button|textbox|searchbox|combobox|listbox|checkbox|radio|slider|spinbutton)\b")

FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@contextmanager
def chromium() -> Iterator[Browser]:
    """Debian's Chromium, or the one that CHROMIUM names."""
    from playwright.sync_api import sync_playwright

    found = shutil.which(os.environ.get("CHROMIUM", "chromium"))
    assert found is not None, "there is no Chromium: run `make test-browser`, which says what to install"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, headless=True, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@dataclass
class Served:
    """An inspector that is served.

    Attributes:
        address: Where, without the token.
        browser: What opens it.
        said: What the browser's console said, and what went wrong in a page.
    """

    address: str
    browser: Browser
    said: list[str]

    def open(self, path: str = "/", **settings: Any) -> Page:
        """A page of somebody who has been let in; each browser that comes after the first brings the same cookie."""
        context = self.browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **settings})
        if self._state is None:
            page = context.new_page()
            page.goto(f"{self.address}/?token={TOKEN}")
            self._state = context.cookies()
        else:
            context.add_cookies(self._state)
            page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda message: self.said.append(message.text) if message.type != "info" else None)
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.goto(self.address + path)
        return page

    _state: Any = None


@contextmanager
def served(memory: SupabaseMemory, browser: Browser, **settings: Any) -> Iterator[Served]:
    """The inspector in a thread and an event loop of its own."""
    app = application(memory, token=TOKEN, **settings)
    port = free_port()
    config = uvicorn.Config(app, port=port, access_log=False, log_config=None, timeout_graceful_shutdown=2)
    server = uvicorn.Server(config)

    async def run() -> None:
        async with memory:
            await server.serve()

    thread = threading.Thread(target=lambda: asyncio.run(run()))
    thread.start()
    try:
        while not server.started:
            assert thread.is_alive(), "the server has ended"
            thread.join(0.05)
        yield Served(f"http://127.0.0.1:{port}", browser, [])
    finally:
        server.should_exit = True
        app.state.inspector.notifier.stop()
        thread.join(30)
        assert not thread.is_alive()


def faint(page: Page) -> list[tuple[str, float]]:
    """Words whose ink does not stand out from their ground as WCAG has it, by element: 4.5, or 3 if they are large."""
    found: list[tuple[str, str, str, bool]] = page.evaluate(
        """() => {
          const clear = (each) => /rgba\\(0, 0, 0, 0\\)|transparent/.test(getComputedStyle(each).backgroundColor);
          const ground = (each) => { while (each.parentElement && clear(each)) each = each.parentElement; return each; };
          const hasWords = (each) => [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
          const seen = new Map();
          for (const each of document.body.querySelectorAll("*")) {
            if (!hasWords(each) || each.closest("svg, .hidden, .skip, :disabled, option") || !each.checkVisibility()) continue;
            const style = getComputedStyle(each);
            const size = parseFloat(style.fontSize), isLarge = size >= 24 || (size >= 18.6 && style.fontWeight >= 700);
            const key = [`${each.tagName}.${each.className}`, style.color, getComputedStyle(ground(each)).backgroundColor, isLarge];
            seen.set(key.join("|"), key);
          }
          return [...seen.values()];
        }"""
    )
    assert found, "there are words"
    measured = [(name, _contrast(ink, ground), 3 if is_large else 4.5) for name, ink, ground, is_large in found]
    return [(name, round(value, 2)) for name, value, least in measured if value < least]


def unnamed(page: Page) -> list[str]:
    """The links, buttons and fields that a screen reader has no name for."""
    told = page.locator("body").aria_snapshot().splitlines()  # at once: a page that follows the database may change
    controls = [(line, role.end()) for line in told if (role := _CONTROL.match(line))]
    assert controls, "there are links"
    return [line for line, end in controls if not line.startswith(' "', end)]


def tab_to(page: Page, name: str) -> None:
    """Press the tab key until something of a name has the focus."""
    for _ in range(80):
        page.keyboard.press("Tab")
        text = page.evaluate("document.activeElement.labels?.[0]?.textContent || document.activeElement.textContent")
        if " ".join(text.split()).startswith(name):
            return
    raise AssertionError(f"{name} cannot be reached")


def _contrast(*colors: str) -> float:
    lighter, darker = sorted((_luminance(color) for color in colors), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    parts = [int(each) / 255 for each in re.findall(r"\d+", color)[:3]]
    linear = [each / 12.92 if each <= 0.03928 else ((each + 0.055) / 1.055) ** 2.4 for each in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
