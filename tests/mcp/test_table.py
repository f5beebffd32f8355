"""The table of tools: every tool is tested, and the page has a row for it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, Final

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.mcp.tools import TOOLS, Access
from tests.mcp.conftest import FORGETTING, FOUND, IN_SPACES, READING, WRITING, client

PAGE: Final = Path(__file__).parents[2] / "docs" / "mcp.md"
OPTIONS: Final[dict[Access, str]] = {
    "read": "", "write": "with `--write`: ", "forget": "with `--destructive`: ", "withdraw": "with `--write`: ",
}  # fmt: skip
OF_SPACES: Final = {"read": "with `--spaces`: ", "write": "with `--spaces --write`: "}


def test_each_tool_is_tried() -> None:
    tried: dict[Access, dict[str, Any]] = {"read": READING, "write": WRITING, "forget": FORGETTING}
    for access, calls in tried.items():
        listed = [each.name for each in TOOLS if each.access == access and not each.of_spaces]
        assert list(calls) == listed, "say how to call it"
    assert list(IN_SPACES) == [each.name for each in TOOLS if each.of_spaces]
    assert FOUND.keys() == READING.keys(), "say what it gives"


async def test_the_page_has_a_row_for_each_with_its_arguments(studio: SupabaseMemory) -> None:
    rows = re.findall(r"^\| `(\w+)\((.*?)\)` \| (.+?) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    found = {name: ({*re.findall(r"\w+", arguments)} - {"or"}, words) for name, arguments, words in rows}
    async with client(studio, write=True, destructive=True, spaces=True) as made:
        takes = {each.name: {*each.input_schema["properties"]} for each in (await made.list_tools()).tools}
    assert {name: arguments for name, (arguments, _) in found.items()} == takes
    for tool in TOOLS:
        words = found[tool.name][1]
        option = OF_SPACES["read" if tool.access == "read" else "write"] if tool.of_spaces else OPTIONS[tool.access]
        assert words.startswith(option), tool.name
        assert option or not words.startswith("with `"), tool.name
