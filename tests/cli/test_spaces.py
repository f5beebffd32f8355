"""The command `spaces`: as a server, in a database that has them and in one that has not."""

from __future__ import annotations

import json
import re

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from tests.cli.running import refused, run, succeeded
from tests.services.postgres import Cluster


@pytest.fixture(scope="module")
def address(cluster: Cluster, shared: str) -> str:
    return cluster.conn_string(shared)


def test_a_space_from_its_beginning_to_its_end(address: str) -> None:
    def spaces(*arguments: str) -> str:
        return succeeded("spaces", arguments[0], "--database-url", address, *arguments[1:]).strip()

    space = spaces("create", "Studio \u202e", "--user", "maya", "--about", "The kiln.")
    token = spaces("invite", space, "--role", "contributor", "--hours", "1")
    assert "for 1, until" in spaces("show", space)
    assert "ben is a contributor of Studio" in spaces("join", token, "--user", "ben")
    assert "is a reader" in spaces("set-role", space, "eve", "reader")
    assert json.loads(spaces("list", "--user", "ben", "--json"))["spaces"][0]["role"] == "contributor"
    of_ben = {"SUPABASE_DB_URL": address, "SUPABASE_MEMORY_USER": "ben"}
    assert run("spaces", "list", environment=of_ben)[1].startswith(f"{space}\tcontributor\t")
    shown = spaces("show", space)
    assert [line.split("\t")[:2] for line in shown.splitlines()[1:]] == [
        ["manager", "maya"], ["contributor", "ben"], ["reader", "eve"]
    ]  # fmt: skip
    assert "\u202e" not in shown, "nothing that was written controls a terminal"
    assert spaces("set-name", space, "ben", "Ben") == "Ben"
    assert "contributor\tben\tBen\tby " in spaces("show", space)
    assert "eve is no member" in spaces("set-role", space, "eve", "none")
    with SupabaseMemory.from_conn_string(address, user_id="ben") as memory:
        memory.space(space).memory.conversation("plan").append([HumanMessage("Hello")])
    shown = run("show", "plan", "--database-url", address, "--user", space)[1]
    assert re.search(r"User \(Ben\) .*\n\s*Hello", shown), shown
    assert "1 message" in spaces("forget", space, "--dry-run")
    assert "2 members deleted" in spaces("forget", space, "--yes")
    assert spaces("list", "--user", "ben").startswith("The user ben is in no space")


def test_what_cannot_be_done_is_said(address: str, conn_string: str) -> None:
    given = ("--database-url", address)
    assert "That is not the id of a space" in refused("spaces", "show", *given, "Studio")
    assert "no such invitation" in refused("spaces", "join", *given, "a.b", "--user", "ben")
    assert "migrate --spaces" in refused("spaces", "list", "--database-url", conn_string, "--user", "ben")
    assert "no terminal" in refused("spaces", "forget", *given, "space:x")
