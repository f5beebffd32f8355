"""Every notebook runs from top to bottom, and is committed with the output that it gives."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import nbformat
import pytest
from nbclient import NotebookClient

NOTEBOOKS = sorted((Path(__file__).parent.parent / "notebooks").glob("*.ipynb"))


def shown(notebook: Any) -> list[str]:
    """What a reader sees below each cell, without what differs from run to run."""
    texts = [
        "".join(
            output.get("text") or output.get("data", {}).get("text/plain", "") for output in cell.get("outputs", [])
        )
        for cell in notebook.cells
    ]
    return [re.sub(r"[0-9a-f]{8}-[0-9a-f-]{27}|code='[0-9a-f]{64}'", "…", text) for text in texts]


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_the_notebook_runs_and_shows_what_it_shows(path: Path, tmp_path: Path) -> None:
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    committed = shown(notebook)
    NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert shown(notebook) == committed


def test_there_are_notebooks() -> None:
    assert NOTEBOOKS
