"""What the first turn of a process pays before its model is asked."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Final

PROGRAM: Final = """
import sys
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware

before = set()

class Model(GenericFakeChatModel):
    def _generate(self, *args, **kwargs):
        print("asked", *(each for each in {*sys.modules} - before if each.startswith("langchain_supabase_memory")))
        return super()._generate(*args, **kwargs)

address, user = sys.argv[1:]
with SupabaseMemory.from_conn_string(address, user_id=user) as memory:
    agent = create_agent(Model(messages=iter(["Hello.", "Yes."])), middleware=[SupabaseMemoryMiddleware(memory)])
    before |= {*sys.modules}
    for said in ("I am Maya.", "Did I say my name last week?"):
        agent.invoke({"messages": said}, {"configurable": {"thread_id": "first"}})
    print(len(memory.conversation("first").read(last=10)))
"""


def test_a_turn_imports_nothing_of_the_package_before_its_model_is_asked(conn_string: str, user_id: str) -> None:
    """What it needs is imported with the middleware, while a server starts; what it does not need, later or never."""
    ran = subprocess.run(
        [sys.executable, "-c", PROGRAM, conn_string, user_id],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.splitlines() == ["asked", "asked", "4"]
