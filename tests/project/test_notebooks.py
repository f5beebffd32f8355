"""Every notebook runs from top to bottom, and its committed output is current."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

from tests.each_case import each_case

pytestmark = pytest.mark.postgres

ROOT = Path(__file__).parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
COLUMNS = 96
"""As wide as a notebook is read without scrolling."""
WORDS = 1_000
"""Five minutes, at two hundred words a minute: text, code and output."""

each_notebook = each_case("path", NOTEBOOKS, ids=lambda path: path.name)


def text(output: Any) -> str:
    """What is printed, or what is displayed: as HTML where there is some, for that is what a notebook shows."""
    data = output.get("data", {})
    return str(output.get("text") or data.get("text/html") or data.get("text/plain", ""))


def shown(notebook: Any) -> list[str]:
    """What a reader sees below each cell, without what differs from run to run."""
    texts = ["".join(map(text, cell.get("outputs", []))) for cell in notebook.cells]
    return [
        re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|code='[0-9a-f]{64}'|\d{4}-\d\d-\d\d \d\d:\d\d", "…", each) for each in texts
    ]


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebook_runs_and_shows_what_it_shows(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    committed = shown(notebook)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(notebook) == committed, "python tools/notebooks.py keeps what it shows now"


@each_notebook
def test_no_line_runs_out_of_the_page(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        printed = [text(output) for output in cell.get("outputs", []) if "text/html" not in output.get("data", {})]
        for shown in [cell.source] * (cell.cell_type == "code") + printed:
            for line in shown.splitlines():
                assert len(line) <= COLUMNS, line


@each_notebook
def test_it_is_read_in_five_minutes(path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    outputs = [re.sub("(?s)<title>.*?</title>|<[^>]*>", " ", each) for each in shown(notebook)]  # but for the mouse's
    assert len(" ".join([*(cell.source for cell in notebook.cells), *outputs]).split()) <= WORDS


def test_the_page_leads_through_all_of_them() -> None:
    page = (ROOT / "docs" / "notebooks.md").read_text()
    assert NOTEBOOKS
    assert re.findall(r"`notebooks/(\w+\.ipynb)`", page) == [path.name for path in NOTEBOOKS]


def test_the_numbers_of_the_comparison_are_those_of_the_notebooks() -> None:
    page = (ROOT / "docs" / "comparison.md").read_text()
    rows = re.findall(r"^\|[^|]*\| ([^|]*) \| `notebooks/([^`]+)` \|$", page, re.MULTILINE)
    assert rows
    for said, name in rows:
        shows = " ".join(shown(nbformat.read(ROOT / "notebooks" / name, as_version=4)))  # type: ignore[no-untyped-call]
        for number in re.findall(r"\d[\d,]*\d", said):
            assert re.search(rf"\b{number}\b", shows), f"{number} is not in {name}"
