"""The package from outside: names, import cost, docstrings, the wheel in an empty environment, the two commands."""

from __future__ import annotations

import ast
import inspect
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from importlib import import_module
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

import langchain_supabase_memory
from langchain_supabase_memory import SupabaseMemory
from tests.bounds import declared
from tests.public import MODULES, public_names

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "langchain_supabase_memory"


SHARED = {"PERSONAL_DATA", "LocalEmbeddings", "Redactor", "SECRETS", "Worker", "WorkerPolicy"}
"""Names of the first week that stand beside others of their kind, too."""


def test_every_name_exported_is_there_and_no_other() -> None:
    assert sorted(langchain_supabase_memory.__all__) == dir(langchain_supabase_memory)
    assert len(langchain_supabase_memory.__all__) <= 26, "what people type in a first week; all else has a module"
    assert all(each is not None for each in public_names().values())
    for module in MODULES[1:]:  # what the package has is imported from there
        assert not {*module.__all__} & {*langchain_supabase_memory.__all__} - SHARED, module
    with pytest.raises(AttributeError):
        langchain_supabase_memory.nothing  # noqa: B018


def test_importing_the_package_loads_nothing_heavy() -> None:
    program = "import sys, langchain_supabase_memory; print(' '.join(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    heavy = {
        "langchain",
        "langgraph",
        "openai",
        "supabase",
        "realtime",
        "postgrest",
        "psycopg",
        "langchain_core",
        "httpx",
        "prometheus_client",
        "opentelemetry",
    }
    assert not heavy & {name.split(".")[0] for name in loaded}


def test_importing_the_memory_loads_little_beside_langchains_messages() -> None:
    program = (
        "import sys, langchain_core.messages.utils\nbefore = {*sys.modules}\n"
        "from langchain_supabase_memory import SupabaseMemory\nprint(' '.join({*sys.modules} - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    homes = {name.split(".")[0] for name in loaded} - sys.stdlib_module_names
    assert homes == {PACKAGE.name, "orjson"}, "no more of langchain_core: its tracers take longest"


BEHIND_AN_ANSWER = (
    "language.extractive.board",
    "language.extractive.digest",
    "language.quality",
    "language.signals",
    "operations.boards.revise",
    "operations.recall.indexing",
)
"""What summarizes, revises boards and indexes."""

ON_REQUEST = (
    "context.explain",
    "language.messages.redaction.secrets",
    "memory.doctor",
    "memory.flow_observer",
    "operations.advice",
    "operations.manifests.manifest",
    "operations.profile",
    "operations.spaces",
    "operations.topics",
    "operations.usage",
)
"""What belongs to verbs and settings that not everybody uses."""


@pytest.mark.parametrize("name", ["SupabaseMemory", "SupabaseMemoryMiddleware"])
def test_importing_a_name_leaves_what_an_answer_does_not_wait_for_and_what_few_ask_for(name: str) -> None:
    program = f"import sys\nfrom langchain_supabase_memory import {name}\nprint(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    loaded = {each.removeprefix(f"{PACKAGE.name}.") for each in ran.stdout.split()}
    assert "memory.services" in loaded
    assert not loaded & {*BEHIND_AN_ANSWER, *ON_REQUEST}


@pytest.mark.parametrize("module", ["worker.worker", "mcp.server"])
def test_what_runs_without_agents_loads_no_graphs_and_no_vector_stores(module: str) -> None:
    program = f"import sys\nimport {PACKAGE.name}.{module}\nprint(' '.join(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert f"{PACKAGE.name}.memory.memory" in ran.stdout.split()
    heavy = {"langchain", "langgraph.graph", "langgraph.prebuilt", "langchain_core.vectorstores", "numpy"}
    assert not heavy & {*ran.stdout.split()}


def test_each_module_that_is_imported_late_exists() -> None:
    for name in (*BEHIND_AN_ANSWER, *ON_REQUEST):
        import_module(f"{PACKAGE.name}.{name}")


def test_each_verb_has_its_async_twin_with_the_same_arguments() -> None:
    public = {
        name: member
        for name, member in inspect.getmembers(SupabaseMemory, inspect.isfunction)
        if not name.startswith("_")
    }
    asking_nobody = {
        *(
            "agent",
            "for_token",
            "for_user",
            "chunking",
            "conversation",
            "space",
            "health",
            "key",
            "owner",
            "require_embedder",
            "scope",
        ),
        *("scope_text", "summary_policy"),
    }
    verbs = set(public) - asking_nobody
    sync = {name for name in verbs if not inspect.iscoroutinefunction(public[name])}
    for name in sync:
        twin = public["a" + name]
        assert inspect.signature(twin) == inspect.signature(public[name]).replace(
            return_annotation=inspect.signature(twin).return_annotation
        )
    assert verbs == sync | {"a" + name for name in sync}


def test_no_mark_of_unfinished_work_is_in_the_code() -> None:
    for path in [*PACKAGE.rglob("*.py"), *(ROOT / "sql").rglob("*.sql")]:
        assert not re.search(r"\b(TODO|FIXME|XXX|NotImplemented)\b", path.read_text()), path


def test_modules_below_the_package_have_a_docstring() -> None:
    for path in PACKAGE.rglob("*.py"):
        assert ast.get_docstring(ast.parse(path.read_text())), path


@pytest.fixture(scope="module")
def uv() -> str:
    return shutil.which("uv") or str(ROOT / ".tools/bin/uv")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory, uv: str) -> Path:
    """A folder with the source distribution, and the wheel that is made from it."""
    folder = tmp_path_factory.mktemp("built")
    subprocess.run([uv, "build", "--quiet", "--out-dir", str(folder), str(ROOT)], check=True)
    return folder


def test_the_long_description_names_files_where_links_would_be_dead(built: Path) -> None:
    with zipfile.ZipFile(next(built.glob("*.whl"))) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        headers, _, shown = archive.read(name).decode().partition("\n\n")
    assert "Description-Content-Type: text/markdown" in headers
    readme = (ROOT / "README.md").read_text()
    links = re.findall(r"(?<!!)\[([^\]]+)\]\((?!https?:)([^)#]+)", readme)
    assert links
    assert re.search(r"!\[", readme)
    for text, path in links:
        assert f"{text} (`{path}`)" in shown
    assert not re.search(r"\]\((?!https?:)", shown)
    assert re.findall(r"^```.*?^```$", shown, re.DOTALL | re.MULTILINE) == re.findall(
        r"^```.*?^```$", readme, re.DOTALL | re.MULTILINE
    )


def test_the_source_distribution_has_what_the_pages_and_the_commands_need(built: Path, tmp_path: Path) -> None:
    with tarfile.open(next(built.glob("*.tar.gz"))) as archive:
        archive.extractall(tmp_path, filter="data")
    (root,) = tmp_path.iterdir()
    readme = (root / "README.md").read_text()
    comparison = (root / "docs" / "comparison.md").read_text()
    assert "`benchmarks/RESULTS.md`" in comparison
    sources = set(re.findall(r"`((?:docs|benchmarks|notebooks|tools)/[^`]+)`", readme + comparison))
    for path in {*sources, *re.findall(r"\]\((?!https?:)([^)#]+)", readme)}:
        assert (root / path).exists(), path
    subprocess.run([sys.executable, "tools/site.py", "--check"], cwd=root, check=True)
    # A file that a command needs and that is not there is an error of `make`, even if it only says what it would do.
    subprocess.run(
        ["make", "--dry-run", "demo", "docs", "test", "lint", "bench"], cwd=root, check=True, capture_output=True
    )


@pytest.mark.postgres
@pytest.mark.slow
def test_the_built_wheel_works_in_an_empty_environment(tmp_path: Path, uv: str, built: Path) -> None:
    wheel = next(built.glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    shipped = {str(path.relative_to(ROOT)) for path in (ROOT / "sql").rglob("*.sql")}
    assert {f"langchain_supabase_memory/{name}" for name in shipped} <= names
    assert "langchain_supabase_memory/py.typed" in names
    assert "langchain_supabase_memory/testing/transcript.jsonl" in names
    looks = {
        str(each.relative_to(ROOT))
        for part in ("static", "templates")
        for each in (PACKAGE / "inspector" / part).iterdir()
    }
    assert looks <= names

    python = tmp_path / "env" / ("Scripts" if os.name == "nt" else "bin") / "python"
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, str(tmp_path / "env")], check=True)
    override = tmp_path / "override.txt"
    override.write_text("certifi>=2024.6.2\n")
    install = [uv, "pip", "install", "--quiet", "--python", str(python), "--override", str(override)]
    subprocess.run([*install, str(wheel)], check=True)
    command = python.parent / "supabase-memory"

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([str(command), *arguments], capture_output=True, text=True, check=False, cwd=tmp_path)

    bare = run("sql")
    assert bare.returncode == 1
    assert "langchain-supabase-memory[cli]" in bare.stderr
    subprocess.run([*install, f"{wheel}[cli]"], check=True)
    printed = run("sql")
    assert "create table memory.conversation_messages" in printed.stdout
    refused = run("migrate", "--database-url", "postgresql://x@127.0.0.1:1/x")
    assert "langchain-supabase-memory[postgres]" in refused.stderr
    refused = run("migrate", "--embedded", "x")
    assert "langchain-supabase-memory[embedded]" in refused.stderr
    subprocess.run([*install, f"{wheel}[cli,embedded]"], check=True)
    migrated = run("migrate", "--embedded", str(tmp_path / "postgres"))
    assert migrated.returncode == 0, migrated.stderr
    assert "release 0.1.0" in migrated.stdout
    assert run("doctor", "--embedded", str(tmp_path / "postgres")).returncode == 0


def imported() -> set[str]:
    """The modules from elsewhere that the package imports, wherever it does."""
    found: set[str] = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name.split(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.level == 0:
                found.add(str(node.module).split(".")[0])
    return found - sys.stdlib_module_names - {PACKAGE.name}


def test_what_is_imported_is_declared_and_what_is_declared_is_imported() -> None:
    homes = {
        name: {each.replace("_", "-").lower() for each in found} for name, found in packages_distributions().items()
    }
    # Several packages share a name such as `langgraph`; the one that is declared brings the others.
    needed = {module: homes.get(module, set()) & declared().keys() for module in imported()}
    assert [module for module, found in needed.items() if not found] == []
    unused = declared().keys() - set().union(*needed.values())
    assert unused == {"tzdata"}, "Python reads that where the system has no time zones, as on Windows"


def test_the_metadata_has_the_extras_that_the_errors_name() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = {
        extra
        for path in PACKAGE.rglob("*.py")
        for extra in re.findall(r'MissingDependencyError\(\s*"[^"]+",\s*"(\w+)"', path.read_text())
    }
    assert named
    assert named < set(extras)
    few_need = {"local", "multilingual", "deepagents"}
    assert set(re.findall(r"\w+", extras["all"][0].split("[")[1])) == set(extras) - {"all"} - few_need
