"""Every notebook runs from top to bottom, and is committed with the output that it gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

pytestmark = pytest.mark.postgres

NOTEBOOKS = sorted((Path(__file__).parents[2] / "notebooks").glob("*.ipynb"))


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


@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebook_runs_and_shows_what_it_shows(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    committed = shown(notebook)
    NotebookClient(notebook, timeout=600, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(notebook) == committed


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS
