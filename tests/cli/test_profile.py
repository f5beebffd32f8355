"""The command `profile`: what it lists, what it changes, and what it asks before."""

from __future__ import annotations

import json
from typing import get_args

import pytest
from click.testing import CliRunner

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.operations.profile import Purpose
from tests.cli.running import NOWHERE, refused, succeeded


@pytest.fixture
def given(conn_string: str, user_id: str) -> tuple[str, ...]:
    return ("--database-url", conn_string, "--user", user_id)


def ok(*arguments: str) -> str:
    return succeeded("profile", *arguments).strip()


def listed(given: tuple[str, ...], *more: str) -> list[str]:
    return [each["value"] for each in json.loads(ok(*given, *more, "--json"))["items"]]


def test_an_item_from_its_beginning_to_its_end(given: tuple[str, ...], conn_string: str, user_id: str) -> None:
    assert "Nothing is remembered about the user" in ok(*given)
    home = ok("remember", "I live in Manila. \u202e", "--about", "home", *given)
    ok("remember", "Answer in Tagalog.", "--kind", "instruction", *given)
    text = ok(*given)
    assert text.index("Instructions and constraints") < text.index("Answer in Tagalog.") < text.index("Facts")
    assert f"{home[:8]}  home: I live in Manila." in text
    assert "wrote it, since 2" in text
    assert "\u202e" not in text, "nothing that was written controls a terminal"
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        held_at = next(each for each in memory.profile.read() if each.id == home).held_at
    assert held_at is not None
    new = ok("correct", home[:8], "I live in Cebu.", *given)
    assert listed(given) == ["Answer in Tagalog.", "I live in Cebu."]
    assert listed(given, "--at", held_at.isoformat(timespec="seconds")) == []
    told = ok("history", new, *given)
    assert told.index("superseded, from 2") < told.index("Cebu")
    assert [each["id"] for each in json.loads(ok("history", new, *given, "--json"))["items"]] == [home, new]
    assert "It holds now." in ok("confirm", new, *given)
    assert "2 items hold now." in ok("confirm", new, new, *given)
    assert "1 item of the profile deleted." in ok("delete", new, *given, "--yes")
    assert listed(given) == ["Answer in Tagalog."]
    for purpose in ("topics", "signals", "tone", "analytics"):
        assert f"{purpose} is off" in ok("consent", purpose, "off", *given, "--yes")
    assert "profile is off" in ok("consent", "profile", "off", *given, "--yes")
    assert listed(given) == []
    assert "does not allow a profile" in refused("profile", "remember", "I like tea.", *given)
    assert "profile is on" in ok("consent", "profile", "on", *given)


def test_what_cannot_be_done_is_said(given: tuple[str, ...], conn_string: str) -> None:
    first, second = (ok("remember", text, *given) for text in ("One.", "Two."))
    assert first != second
    assert "There is no such item" in refused("profile", "confirm", "zzz", *given)
    assert "Several items begin so" in refused("profile", "confirm", "", *given)
    assert "Missing option '--user'" in refused("profile", "--database-url", conn_string)
    assert "Options come after the command" in refused("profile", *given, "remember", "x", *given)
    for each in (("delete", first), *(("consent", purpose, "off") for purpose in get_args(Purpose))):
        told = refused("profile", *each, *given)
        assert "no terminal" in told
        assert "--dry-run" not in told, "the command has no such option"
    with SupabaseMemory.from_conn_string(conn_string, user_id=given[-1]) as memory:
        assert memory.privacy.consents() == [], "nothing is refused before it was confirmed"
    assert "--yes cannot apply" in refused("profile", "consent", "tone", "on", "--yes", *given)
    assert (
        "a space has no profile"
        in refused(
            "profile", "--database-url", conn_string, "--user", "space:00000000-0000-4000-8000-000000000000"
        ).lower()
    )
    assert listed(given) == ["Two.", "One."]


def test_users_never_meet(given: tuple[str, ...], conn_string: str) -> None:
    item = ok("remember", "I am Maya.", *given)
    other = ("--database-url", conn_string, "--user", f"{given[-1]}-other")
    assert listed(other) == []
    for command in ("confirm", "history"):
        assert "There is no such item" in refused("profile", command, item, *other)
    assert "There is no such item" in refused("profile", "delete", item, "--yes", *other)
    assert listed(given) == ["I am Maya."]


def test_help_has_examples() -> None:
    for command in ([], ["remember"], ["correct"], ["consent"]):
        output = CliRunner().invoke(commands, ["profile", *command, "--help"], env=NOWHERE).output
        assert "  supabase-memory profile" in output
