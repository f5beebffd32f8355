"""What an import costs, in fresh processes."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING, Final

from benchmarks.harness import Table, interleaved

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.services import Lab

_STATEMENTS: Final = (
    "pass",
    "import langchain_supabase_memory",
    "from langchain_supabase_memory import SupabaseMemory",
    "from langchain_core.messages import HumanMessage",
)


async def run(lab: Lab) -> list[Table]:
    def fresh(statement: str) -> Callable[[None], object]:
        return lambda _: subprocess.run([sys.executable, "-c", statement], check=True)

    contestants = {statement: fresh(statement) for statement in _STATEMENTS}
    medians = await interleaved(contestants, lambda: None, rounds=3 if lab.quick else 20, seconds=60)
    rows: list[list[str | float]] = [
        [statement, value, value - medians["pass"], value / medians["pass"]] for statement, value in medians.items()
    ]
    return [Table("Import, in a fresh process", ["python -c", "ms", "more than pass, ms", "x pass"], rows)]
