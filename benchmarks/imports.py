"""Measure the cost of imports in new processes."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
from statistics import median
from typing import TYPE_CHECKING, Final

from benchmarks.harness import Table, interleaved, verdict

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.services import Lab

BOUND_SECONDS: Final = 0.2
_BASE: Final = "from langchain_core.messages import HumanMessage"
_OURS: Final = "from langchain_supabase_memory import SupabaseMemory"
_STATEMENTS: Final = ("pass", "import langchain_supabase_memory", _OURS, _BASE)
_HELP: Final = "supabase-memory --help"
_CODE_OF_HELP: Final = (
    "import sys; sys.argv = ['supabase-memory', '--help']; from langchain_supabase_memory.cli import main; main()"
)
_HEAVY: Final = ("langchain_core", "supabase")
"""Packages that the command line's help does not need."""


_ENVIRONMENT: Final = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
"""The first import compiles and later ones read the bytecode, as with any installed package."""


async def run(lab: Lab) -> list[Table]:
    codes = {statement: statement for statement in _STATEMENTS} | {_HELP: _CODE_OF_HELP}
    processor: dict[str, list[float]] = {name: [] for name in codes}

    def fresh(name: str) -> Callable[[None], object]:
        def ran(_: None) -> None:
            before = resource.getrusage(resource.RUSAGE_CHILDREN)
            subprocess.run([sys.executable, "-c", codes[name]], check=True, capture_output=True, env=_ENVIRONMENT)
            after = resource.getrusage(resource.RUSAGE_CHILDREN)
            processor[name].append(1000 * (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime))

        return ran

    contestants = {name: fresh(name) for name in codes}
    medians = await interleaved(
        contestants, lambda: None, rounds=3 if lab.quick else 20, seconds=15 if lab.quick else 90, warm_up=1
    )
    spent = {name: median(values[1:]) for name, values in processor.items()}
    rows: list[list[str | float]] = [[name, medians[name], spent[name], spent[name] - spent[_BASE]] for name in codes]
    notes = [
        verdict("CPU seconds that SupabaseMemory adds", (spent[_OURS] - spent[_BASE]) / 1000, BOUND_SECONDS),
        verdict(f"modules of {' and '.join(_HEAVY)} that the help imports", len(_imported(_CODE_OF_HELP)), 0),
    ]
    columns = ["in a fresh process", "ms", "CPU, ms", "more than langchain_core.messages, ms"]
    return [Table("Import", columns, rows, notes)]


def _imported(code: str) -> list[str]:
    """Return which of the heavy packages a program imports."""
    there = f"print(*(each for each in {_HEAVY} if each in sys.modules), file=sys.stderr)"
    shown = f"try:\n    {code}\nfinally:\n    {there}"
    ended = subprocess.run([sys.executable, "-c", shown], check=False, capture_output=True, text=True)
    return ended.stderr.split()
