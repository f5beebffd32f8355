"""Create the README's screenshot of the inspector from the demo's data: `.tools/browser/env/bin/python`.

python tools/screenshot.py [docs/inspector.png]
"""

from __future__ import annotations

import asyncio
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from langchain_supabase_memory import MemoryConfig, SupabaseMemory, Worker
from langchain_supabase_memory.adapters.transports.embedded import start_migrated
from langchain_supabase_memory.cli.demo.agent import BUDGET, POLICY
from langchain_supabase_memory.cli.demo.replay import THREAD, USER
from langchain_supabase_memory.testing import transcript
from tests.inspector.browsing import chromium, served

TITLE = "A kiln, 64 bowls, half a marathon"


async def _fill(conn_string: str) -> None:
    """Store the demo's data, and run a worker once."""
    async with SupabaseMemory.from_conn_string(
        conn_string, user_id=USER, budget=BUDGET, config=MemoryConfig(policy=POLICY)
    ) as memory:
        said = transcript.load(None)
        studio = memory.conversation(THREAD)
        await studio.aappend([each.message for each in said], created_at=[each.created_at for each in said])
        await Worker(memory).drain()
        await studio.aupdate(title=TITLE)


def main(path: Path) -> None:
    """Create the screenshot.

    Args:
        path: The output file.
    """
    question = transcript.questions()[0].question
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "postgres"
        conn_string = start_migrated(folder)
        asyncio.run(_fill(conn_string))
        browser = stack.enter_context(chromium())  # it has its own event loop
        memory = SupabaseMemory.from_conn_string(
            conn_string, user_id=USER, budget=BUDGET, config=MemoryConfig(policy=POLICY)
        )
        with served(memory, browser) as inspector:
            page = inspector.open(f"/conversation/prompt?thread={THREAD}", viewport={"width": 1180, "height": 1240})
            page.get_by_label("Try a question").fill(question)
            page.get_by_role("button", name="Show").click()
            page.get_by_text("would be sent instead of").wait_for()
            page.screenshot(path=path)
    size = path.stat().st_size
    sys.stdout.write(f"{path}: {size:,} bytes\n")
    if size > 300_000:
        sys.exit("It is larger than 300 kB: make the window smaller.")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/inspector.png"))
