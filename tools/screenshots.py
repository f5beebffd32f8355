"""Create pictures of every screen of the inspector, in light and dark, at 1280 and 400 pixels.

.tools/browser/env/bin/python tools/screenshots.py FOLDER [axe.min.js] prints what axe finds as well, if it is given.
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import MemoryConfig, SupabaseMemory, Worker
from langchain_supabase_memory.adapters.transports.embedded import start_migrated
from langchain_supabase_memory.cli.demo.agent import BUDGET, POLICY
from langchain_supabase_memory.cli.demo.replay import THREAD, USER
from langchain_supabase_memory.inspector.screen_list import SCREENS
from langchain_supabase_memory.testing import transcript
from tests.inspector.browsing import chromium, served
from tests.inspector.visiting import address_of

if TYPE_CHECKING:
    from playwright.sync_api import Page

TITLE: Final = "A kiln, 64 bowls, half a marathon"
WIDTHS: Final = (1280, 400)
_OTHERS: Final = frozenset(
    ("message", "messages", "item", "profile_item", "profile_export", "erase", "shared", "source", "space")
)
"""Parts of other screens, and those of a space."""


async def fill(conn_string: str) -> None:
    """Store the demo's conversation with two answers and their prompts, one with a tool, and the data of two users."""
    config = MemoryConfig(policy=POLICY)
    async with SupabaseMemory.from_conn_string(conn_string, user_id=USER, budget=BUDGET, config=config) as memory:
        lines = transcript.load(None)
        studio = memory.conversation(THREAD)
        times = [each.created_at for each in lines]
        await studio.aappend([each.message for each in lines], created_at=times)
        await Worker(memory).drain()
        asked = HumanMessage("What did the kiln show when it stopped?", id="asked-1")
        answer = AIMessage("It showed E-47, at 840 degrees.", id="told-1")
        await studio.aappend([asked, answer], pack=await studio.acontext(asked))
        again = HumanMessage("Which element do I order for it?", id="asked-2")
        call = AIMessage("", tool_calls=[{"name": "look_up", "args": {"part": "element"}, "id": "call-1"}], id="call-1")
        found = ToolMessage("Type K, 240 V, three in stock.", tool_call_id="call-1", name="look_up", id="result-1")
        told = AIMessage("The 240 V element of type K; three are in stock.", id="told-2")
        await studio.aappend([again, call, found, told], pack=await studio.acontext(again))
        await studio.board.aadd("fact", "The hotel wants 64 bowls.", actor="ana")
        await studio.aupdate(title=TITLE)
        await memory.conversation("family").aadd_turn("Plans for the 👨‍👩‍👧‍👦 trip", "Where to?")
        await memory.conversation("persian").aadd_turn("می‌خواهم سفال یاد بگیرم", "با کمال میل.")
    async with SupabaseMemory.from_conn_string(conn_string, user_id="ben") as other:
        await other.conversation("t").aadd_turn("Which glaze is food safe?", "A tested one.")


def _pages() -> dict[str, str]:
    """Return the address of each screen."""
    pages = {each.name: address_of(each, THREAD) for each in SCREENS if each.name not in _OTHERS}
    newest = len(transcript.load(None)) + 1
    return {**pages, "turn": f"/conversation/prompts/turn?thread={THREAD}&answer={newest}"}


def _axe(page: Page, script: str) -> list[str]:
    """Return what axe finds on a page."""
    page.evaluate(script)
    violations = page.evaluate("async () => (await axe.run()).violations")
    return [f"{each['id']}: {node['html'][:160]}" for each in violations for node in each["nodes"]]


def main(folder: Path, axe: Path | None) -> None:
    """Create the pictures.

    Args:
        folder: Where they are written.
        axe: The script of axe-core; without it nothing is checked.
    """
    folder.mkdir(parents=True, exist_ok=True)
    script = axe.read_text(encoding="utf-8") if axe else ""
    with ExitStack() as stack:
        conn_string = start_migrated(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "postgres")
        asyncio.run(fill(conn_string))
        browser = stack.enter_context(chromium())
        config = MemoryConfig(policy=POLICY)
        for owner, pages in ((USER, _pages()), (None, {"users": "/", "all-queue": "/queue", "doctor": "/doctor"})):
            memory = SupabaseMemory.from_conn_string(conn_string, user_id=owner, budget=BUDGET, config=config)
            with served(memory, browser, write=True, actor="ana") as inspector:
                for scheme in ("light", "dark"):
                    for width in WIDTHS:
                        view = {"width": width, "height": 800}
                        page = inspector.open("/", viewport=view, color_scheme=scheme, bypass_csp=bool(script))
                        for name, path in pages.items():
                            page.goto(inspector.address + path)
                            page.screenshot(path=folder / f"{name}-{scheme}-{width}.png")
                            for finding in _axe(page, script) if script and width == WIDTHS[0] else ():
                                sys.stdout.write(f"{name} {scheme}: {finding}\n")
                        page.context.close()
    sys.stdout.write(f"{len(list(folder.glob('*.png')))} pictures in {folder}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]) if len(sys.argv) > 2 else None)
