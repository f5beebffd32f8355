"""Run the notebooks and store their output: `.venv/bin/python tools/notebooks.py [PREFIX …]`.

Without an argument it runs all; else those whose names have one of the prefixes, such as `06`.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import nbformat
from nbclient import NotebookClient

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"


def run(path: Path) -> None:
    """Run a notebook in an empty folder, and save it with its output, without data that varies between runs.

    Args:
        path: The notebook.

    Raises:
        CellExecutionError: A cell fails; the file is not changed.
    """
    notebook = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    with tempfile.TemporaryDirectory() as folder:
        NotebookClient(notebook, timeout=600, resources={"metadata": {"path": folder}}).execute()
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)
        for each in [cell, *cell.get("outputs", [])]:
            if "execution_count" in each:
                each["execution_count"] = None
    nbformat.write(notebook, path)  # type: ignore[no-untyped-call]


def main(beginnings: list[str]) -> int:
    """Run the notebooks with these name prefixes, or all."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        if not beginnings or path.name.startswith(tuple(beginnings)):
            sys.stdout.write(f"{path.name}\n")
            run(path)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
