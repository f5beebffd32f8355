"""A release: what is filled in at one place, what it still lacks, and the workflows that build and try it."""

from __future__ import annotations

import re
import shutil
import subprocess
import tomllib
import zipfile
from pathlib import Path

import yaml  # type: ignore[import-untyped]

from tools import release
from tools.release import Release

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FILLED = Release("0.2.0", "https://github.com/kiln/langchain-supabase-memory", "https://kiln.github.io/memory/")
CHANGELOG = "# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - 2026-12-01\n"


def test_what_follows_from_the_addresses_is_up_to_date() -> None:
    assert not release.stale(Release.read((ROOT / "pyproject.toml").read_text()))


def test_a_release_is_refused_while_something_is_missing() -> None:
    empty = Release("0.1.0", "", "")
    assert [each.split("`")[1] for each in empty.lacks("", [])[:2]] == ["repository", "documentation"]
    assert "## [0.1.0] - YYYY-MM-DD" in empty.lacks("", [])[2]
    assert not FILLED.lacks(CHANGELOG, ["v0.1.0"])
    assert not FILLED.lacks(CHANGELOG, ["v0.1.0", "v0.2.0"], is_tagged=True)
    (again,) = FILLED.lacks(CHANGELOG, ["v0.2.0"])
    assert "raise the version" in again
    (other,) = FILLED.lacks(CHANGELOG, ["v0.3.0"], is_tagged=True)
    assert "The tag is not v0.2.0" in other
    for wrong in ("http://github.com/kiln/x", "https://github.com/OWNER …", "github.com/kiln/x", "https://x y.com"):
        assert len(Release("0.2.0", wrong, FILLED.documentation).lacks(CHANGELOG, [])) == 1, wrong


def test_addresses_are_written_where_they_are_stated_and_again() -> None:
    security, site = (ROOT / "SECURITY.md").read_text(), (ROOT / "zensical.toml").read_text()
    for _ in range(2):
        security, site = FILLED.security(security), FILLED.site(site)
        assert f"> {FILLED.repository}/security/advisories/new" in security
        project = tomllib.loads(site)["project"]
        assert project["site_url"] == FILLED.documentation
        assert project["repo_url"] == FILLED.repository
        assert "0.2.0" in project["copyright"]
    now = Release.read((ROOT / "pyproject.toml").read_text())
    assert now.site(site) == (ROOT / "zensical.toml").read_text()
    assert now.security(security) == (ROOT / "SECURITY.md").read_text()


def _metadata(folder: Path, repository: str, documentation: str) -> str:
    """The metadata of a wheel that is built with these addresses."""
    for name in ("README.md", "LICENSE", "hatch_build.py"):
        shutil.copy(ROOT / name, folder)
    for name in ("langchain_supabase_memory", "sql"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    text = (ROOT / "pyproject.toml").read_text()
    text = text.replace('repository = ""', f'repository = "{repository}"')
    text = text.replace('documentation = ""', f'documentation = "{documentation}"')
    (folder / "pyproject.toml").write_text(text)
    uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(folder / "dist"), str(folder)], check=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith(".dist-info/METADATA"))
        return archive.read(name).decode()


def test_an_index_shows_the_addresses_once_they_are_there(tmp_path: Path) -> None:
    headers, _, shown = _metadata(tmp_path, FILLED.repository, FILLED.documentation).partition("\n\n")
    version = PYPROJECT["project"]["version"]
    assert re.findall(r"^Project-URL: ([^,]+)", headers, re.MULTILINE) == [
        "Documentation",
        "Repository",
        "Issues",
        "Changelog",
        "Report a weakness",
    ]
    assert f"]({FILLED.repository}/blob/v{version}/docs/getting-started.md#troubleshooting)" in shown
    assert f"]({FILLED.repository}/raw/v{version}/docs/inspector.png)" in shown
    assert not re.search(r"\]\((?!https?:)", shown)


def test_both_workflows_run_on_each_python_that_is_named() -> None:
    named = [each.rpartition(" ")[2] for each in PYPROJECT["project"]["classifiers"] if re.search(r":: 3\.\d+$", each)]
    jobs = [
        yaml.safe_load((ROOT / ".github" / "workflows" / name).read_text())["jobs"][job]
        for name, job in (("ci.yml", "run"), ("release.yml", "try"))
    ]
    assert [job["strategy"]["matrix"]["python"] for job in jobs] == [named, named]


def test_a_release_needs_no_stored_token() -> None:
    text = (ROOT / ".github" / "workflows" / "release.yml").read_text()
    jobs = yaml.safe_load(text)["jobs"]
    assert "secrets." not in text
    assert jobs["publish"]["permissions"] == {"id-token": "write"}
    assert [jobs[name].get("needs") for name in ("build", "try", "publish", "announce")] == [
        None,
        "build",
        "try",
        "publish",
    ]
    extras = PYPROJECT["project"]["optional-dependencies"]
    for named in re.findall(r"whl\)\[([\w,]+)\]", text):
        assert set(named.split(",")) <= set(extras)
