"""The table of tools: every tool is tested, and the page has a row for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.mcp.tools import TOOLS, Access
from tests.mcp.conftest import FORGETTING, FOUND, READING, WRITING, client

PAGE: Final = Path(__file__).parents[2] / "docs" / "mcp.md"
OPTIONS: Final[dict[Access, str]] = {"write": "with `--write`: ", "forget": "with `--destructive`: "}


def test_each_tool_is_tried() -> None:
    tried: dict[Access, dict[str, Any]] = {"read": READING, "write": WRITING, "forget": FORGETTING}
    for access, calls in tried.items():
        assert list(calls) == [each.name for each in TOOLS if each.access == access], "say how to call it"
    assert FOUND.keys() == READING.keys(), "say what it gives"


async def test_the_page_has_a_row_for_each_with_its_arguments(studio: SupabaseMemory) -> None:
    rows = re.findall(r"^\| `(\w+)\((.*?)\)` \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = {name: ({*re.findall(r"\w+", arguments)} - {"or"}, words) for name, arguments, words in rows}
    async with client(studio, write=True, destructive=True) as made:
        takes = {each.name: {*each.input_schema["properties"]} for each in (await made.list_tools()).tools}
    assert {name: arguments for name, (arguments, _) in found.items()} == takes
    for tool in TOOLS:
        option = next((each for each in OPTIONS.values() if found[tool.name][1].startswith(each)), None)
        assert option == OPTIONS.get(tool.access), tool.name
