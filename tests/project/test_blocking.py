"""Nothing blocks an event loop: BlockBuster watches every async function of the package, each in a new process."""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.services.data_api import DataApi, token
from tests.services.postgres import Cluster

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "langchain_supabase_memory"
PROGRAMS = ("cli", "mcp")
"""What is a program of its own, and shares its event loop with nobody."""

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]  # dozens of processes, on a machine that may be busy

Run = Callable[..., list[dict[str, Any]]]


@pytest.fixture(scope="module")
def run(cluster: Cluster, data_api: DataApi, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs uses of the async surfaces at a transport; each time it is asked for the same, it gives the same."""
    known: dict[tuple[str, ...], list[dict[str, Any]]] = {}
    of_spaces = cluster.conn_string(cluster.migrated_database(spaces=True))

    def run(transport: str, *only: str) -> list[dict[str, Any]]:
        if (transport, *only) not in known:
            folder = tmp_path_factory.mktemp("blocking")
            address = {"direct": of_spaces, "data_api": data_api.url, "embedded": str(folder / "postgres")}[transport]
            # With the vocabulary of `tiktoken` on disk and without it; with modules compiled before and without.
            named = {"direct": ["--vocabulary"], "data_api": ["--key", token("service_role")], "embedded": []}[
                transport
            ]
            made = subprocess.run(
                [
                    *(sys.executable, "-m", "tests.blocking_process", "--transport", transport, "--address", address),
                    *("--user", f"blocking-{transport}", "--only", ",".join(only), *named),
                ],
                cwd=ROOT,
                env={
                    **os.environ,
                    "TIKTOKEN_CACHE_DIR": str(folder / "vocabulary"),
                    "PYTHONDONTWRITEBYTECODE": "1" if transport == "data_api" else "",
                },
                capture_output=True,
                text=True,
                check=False,
            )
            assert made.returncode == 0, made.stderr[-3000:]
            known[transport, *only] = [json.loads(line) for line in made.stdout.splitlines()]
        return known[transport, *only]

    return run


@pytest.mark.parametrize("transport", ["direct", "data_api", "embedded"])
def test_no_use_of_an_async_surface_blocks_its_event_loop(run: Run, transport: str) -> None:
    results = run(transport, *(["everything"] if transport == "embedded" else []))
    assert len(results) >= {"direct": 80, "data_api": 25, "embedded": 1}[transport]
    failures = [(each["use"], each["failed"][-900:]) for each in results if each["failed"]]
    assert not failures, "\n".join(map(str, failures))
    assert {each["use"]: each["blocked"] for each in results if each["blocked"]} == {}


def test_every_async_function_of_the_package_was_used(run: Run) -> None:
    used = {name for transport in ("direct", "data_api") for each in run(transport) for name in each["ran"]}
    unused = sorted(set(_async_functions()) - used)
    assert not unused, "\n".join(unused)


def test_what_blocks_is_found(run: Run) -> None:
    (control,) = run("direct", "blocking")
    found = {each.split(" in ")[0] for each in control["blocked"]}
    assert {"ssl.create_default_context", "socket.getaddrinfo", "psycopg.connect", "import tests.stepping"} <= found
    assert "time.sleep" in str(control["failed"])


def _async_functions() -> Iterator[str]:
    """Every `async def` of the package that has a body, by its file and its qualified name."""
    for path in PACKAGE.rglob("*.py"):
        where = path.relative_to(PACKAGE)
        if where.parts[0] not in PROGRAMS:
            yield from (f"{where}:{name}" for name in _in(ast.parse(path.read_text()), ""))


def _in(node: ast.AST, prefix: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.AsyncFunctionDef) and any(not _is_text(each) for each in child.body):
            yield prefix + child.name
        if isinstance(child, (ast.AsyncFunctionDef, ast.FunctionDef)):
            yield from _in(child, f"{prefix}{child.name}.<locals>.")
        elif isinstance(child, ast.ClassDef):
            yield from _in(child, f"{prefix}{child.name}.")
        else:
            yield from _in(child, prefix)


def _is_text(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
