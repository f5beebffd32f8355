"""A verb's module is imported in a thread, also where another thread is importing it."""

from __future__ import annotations

import asyncio
import sys
from threading import Event, Thread
from typing import TYPE_CHECKING

import pytest

from langchain_supabase_memory.memory.handle import load

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.pure

MODULE = "a_module_that_takes_its_time"

TEXT = """
from tests.memory import test_loading
test_loading.begun.set()
test_loading.goes_on.wait(10)
done = True
"""

begun, goes_on = Event(), Event()


def test_a_module_that_another_thread_is_importing_is_waited_for_outside_the_event_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / f"{MODULE}.py").write_text(TEXT)
    monkeypatch.syspath_prepend(tmp_path)
    other = Thread(target=__import__, args=(MODULE,))
    other.start()
    assert begun.wait(10)
    assert MODULE in sys.modules

    async def use() -> bool:
        loading = asyncio.create_task(load(MODULE))
        await asyncio.wait([loading], timeout=0.1)
        assert not loading.done()
        goes_on.set()
        await loading
        return bool(sys.modules[MODULE].done)

    try:
        assert asyncio.run(use())
    finally:
        goes_on.set()
        other.join(10)
        sys.modules.pop(MODULE, None)
