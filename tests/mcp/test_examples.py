"""The example configuration files: each is valid JSON or TOML, matches the page, and starts the server."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import click

from langchain_supabase_memory.cli.application import commands
from tests.each_case import each_case

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "examples" / "mcp").iterdir())
_SERVERS = ("mcpServers", "servers", "mcp_servers")
"""What Claude and Cursor, VS Code, and Codex call them."""
PAGE = (ROOT / "docs" / "mcp.md").read_text()


def test_each_block_of_the_page_is_a_file_and_each_file_a_block() -> None:
    blocks = re.findall(r"```(?:json|toml)\n(.*?)```", PAGE, re.DOTALL)
    assert sorted(blocks) == sorted(path.read_text() for path in FILES)


@each_case("path", FILES, ids=[path.name for path in FILES])
def test_each_file_starts_the_server(path: Path) -> None:
    document: dict[str, Any] = (tomllib if path.suffix == ".toml" else json).loads(path.read_text())
    ((name, server),) = next(document[key] for key in _SERVERS if key in document).items()
    assert name == "memory"
    if "url" in server:
        assert server["url"].endswith("/mcp")
        return
    assert server["command"] == "supabase-memory"
    command, *arguments = server["args"]
    assert command == "mcp"
    env = {**server.get("env", {}), **dict.fromkeys(server.get("env_vars", ()), "of the client's own")}
    with commands.make_context("supabase-memory", ["mcp"], resilient_parsing=True) as above:
        context = commands.commands["mcp"].make_context("mcp", list(arguments), parent=above)
    assert isinstance(context, click.Context)
    assert context.params["user_id"] or env["SUPABASE_MEMORY_USER"]
    assert context.params["embedded"] or env["SUPABASE_DB_URL"]
    assert not context.params["destructive"]
