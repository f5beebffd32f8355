"""How long the fuzzers run: as they are by default, and longer by the option `--fuzz-factor`."""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "LANGCHAIN_SUPABASE_MEMORY_FUZZ_FACTOR"
"""Where the option is kept, so that it is known when the tests are collected."""


def examples(number: int) -> int:
    """So many examples, times the factor."""
    return number * int(os.environ.get(VARIABLE, "1"))
