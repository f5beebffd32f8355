"""Create the pictures of the documentation, of the inspector in a real browser: `.tools/browser/env/bin/python`.

python tools/screenshot.py [docs]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import ContextBudget, MemoryConfig, SupabaseMemory, Worker
from langchain_supabase_memory.adapters.transports.embedded import start_migrated
from langchain_supabase_memory.cli.demo.agent import BUDGET, POLICY
from langchain_supabase_memory.cli.demo.replay import THREAD, USER
from langchain_supabase_memory.testing import transcript
from tests.inspector.browsing import chromium, served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

TITLE: Final = "A kiln, 64 bowls, half a marathon"
LARGEST: Final = 300_000
"""The most bytes of a picture."""


async def _fill(conn_string: str) -> None:
    """Store the demo's data, and run a worker once."""
    async with SupabaseMemory.from_conn_string(
        conn_string, user_id=USER, budget=BUDGET, config=MemoryConfig(policy=POLICY)
    ) as memory:
        lines = transcript.load(None)
        studio = memory.conversation(THREAD)
        await studio.aappend([each.message for each in lines], created_at=[each.created_at for each in lines])
        await Worker(memory).drain()
        await studio.aupdate(title=TITLE)


async def _fill_dinner(conn_string: str) -> int:
    """Store the conversation of `docs/why.md`. Returns the number of its last answer."""
    budget = ContextBudget(tokens=1_500)

    def summarize(prompt: object) -> str:
        return "They speak of dishes, and of how they are made."

    async with SupabaseMemory.from_conn_string(conn_string, user_id="maya", budget=budget, model=summarize) as memory:
        dinner = memory.conversation("dinner")
        turns = [
            ("Hazelnuts make me ill, by the way.", "I will keep that in mind."),
            *((f"How is dish {each} made?", "It is cooked slowly, with onions and herbs. " * 12) for each in range(40)),
            ("What could I bake on Sunday?", "How about a hazelnut cake?"),
        ]
        for question, answer in turns:
            asked = HumanMessage(question)
            await dinner.aappend([asked, AIMessage(answer)], pack=await dinner.acontext(asked))
        return 2 * len(turns) - 1


def _next_prompt(conn_string: str, browser: Browser, folder: Path) -> None:
    """Create the README's picture."""
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=USER, budget=BUDGET, config=MemoryConfig(policy=POLICY)
    )
    with served(memory, browser) as inspector:
        page = inspector.open(f"/conversation/prompt?thread={THREAD}", viewport={"width": 1180, "height": 1240})
        page.get_by_label("Try a question").fill(transcript.questions()[0].question)
        page.get_by_role("button", name="Show").click()
        page.get_by_text("would be sent instead of").wait_for()
        page.screenshot(path=folder / "inspector.png")


def _why(conn_string: str, browser: Browser, folder: Path, answer: int) -> None:
    """Create the pictures of the page on why an answer did not know something."""
    memory = SupabaseMemory.from_conn_string(conn_string, user_id="maya", budget=ContextBudget(tokens=1_500))
    with served(memory, browser) as inspector:
        page = inspector.open("/conversation/prompts?thread=dinner", viewport={"width": 1180, "height": 620})
        page.screenshot(path=folder / "why-prompts.png")
        page.goto(f"{inspector.address}/conversation/prompts/turn?thread=dinner&answer={answer}")
        page.get_by_label("A fact or a code in a few words").fill("hazelnuts make me ill")
        page.get_by_role("button", name="Explain").click()
        page.get_by_role("status").wait_for()
        page.evaluate("document.getElementById('turn').scrollIntoView()")
        page.screenshot(path=folder / "why-answer.png")


def main(folder: Path) -> None:
    """Create the pictures.

    Args:
        folder: Where they are written.
    """
    with ExitStack() as stack:
        conn_string = start_migrated(Path(stack.enter_context(tempfile.TemporaryDirectory())) / "postgres")
        asyncio.run(_fill(conn_string))
        answer = asyncio.run(_fill_dinner(conn_string))
        browser = stack.enter_context(chromium())  # it has its own event loop
        _next_prompt(conn_string, browser, folder)
        _why(conn_string, browser, folder, answer)
    for path in sorted(folder.glob("*.png")):
        size = path.stat().st_size
        sys.stdout.write(f"{path}: {size:,} bytes\n")
        if size > LARGEST:
            sys.exit("It is larger than 300 kB: make the window smaller.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs"))
