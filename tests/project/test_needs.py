"""A test's marks match what it starts, so that `-m pure` needs no server, no npm and no other process."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from langchain_supabase_memory import SupabaseMemory
from tests import needs
from tests.each_case import each_case
from tests.project import test_examples_page
from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster, packaged
from tests.sql import test_live, test_replicas


def makes_a_cluster() -> object:
    return Cluster(packaged(16))


def makes_one_further_down() -> object:
    return [(lambda: makes_a_cluster())()]


def asks_for_a_fixture(request: pytest.FixtureRequest) -> object:
    return request.getfixturevalue("data_api")


def opens_the_embedded_one() -> object:
    return SupabaseMemory.embedded("./memory")


def serves() -> object:
    return DataApi


class Helper:
    def start(self) -> object:
        return makes_a_cluster()


def uses_a_class() -> object:
    return Helper().start()


def runs_npm() -> object:
    return ["npm", "start"]


def runs_a_command() -> object:
    return ("migrate", "--embedded", "x")


def runs_python() -> object:
    return subprocess.run([sys.executable, "-c", ""], check=True)


def signs() -> str:
    return token("anon")


@each_case(
    ("function", "part"),
    [
        (makes_a_cluster, "postgres"), (makes_one_further_down, "postgres"), (asks_for_a_fixture, "data_api"),
        (opens_the_embedded_one, "postgres"), (serves, "data_api"), (uses_a_class, "postgres"),
        (runs_npm, "data_api"), (runs_a_command, "postgres"), (runs_python, "process"), (signs, "pure"),
    ],
    ids=lambda each: getattr(each, "__name__", ""),
)  # fmt: skip
def test_what_a_function_starts_is_read_from_its_code(function: Callable[..., Any], part: str) -> None:
    assert needs._most(needs._started(function)) == part


@each_case("module", [test_live, test_replicas])
def test_what_a_modules_own_fixtures_start_is_found(module: Any) -> None:
    found = [getattr(each, "_fixture_function", None) for each in vars(module).values()]
    assert frozenset().union(*(needs._started(each) for each in found if each is not None))


def test_a_program_that_a_file_names_is_found_by_where_it_lies() -> None:
    assert "data_api" in needs._started(test_examples_page.test_npm_start_builds_and_serves_the_page)


@pytest.mark.pure
@each_case("program", ["npm", "postgrest", "initdb", "python"])
def test_a_pure_test_cannot_start_a_process(program: str) -> None:
    with pytest.raises(RuntimeError, match=f"is marked pure, and starts {program}"):
        subprocess.run([program, "--version"], check=False)
    with pytest.raises(RuntimeError, match="is marked pure"):
        subprocess.run([f"/usr/bin/{program}"], check=False)
    with pytest.raises(RuntimeError, match="is marked pure"):
        asyncio.run(asyncio.create_subprocess_exec(program))
    with pytest.raises(RuntimeError, match="is marked pure, and starts os.fork"):
        os.fork()


def test_every_pure_test_of_this_run_needs_nothing(request: pytest.FixtureRequest) -> None:
    pure = [item for item in request.session.items if item.get_closest_marker("pure")]
    asked = {name for item in pure for name in getattr(item, "fixturenames", ())}
    assert pure
    assert not asked & set(needs._FIXTURES)
