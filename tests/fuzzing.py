"""The length of fuzzer runs, which the option `--fuzz-factor` multiplies."""

from __future__ import annotations

import os
from typing import Final

VARIABLE: Final = "LANGCHAIN_SUPABASE_MEMORY_FUZZ_FACTOR"
"""Stores the option, so that it is known at collection."""


def examples(number: int) -> int:
    """Return the number of examples, times the factor."""
    return number * int(os.environ.get(VARIABLE, "1"))
