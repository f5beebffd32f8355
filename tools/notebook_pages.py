"""Write the notebooks as pages of the site, with the output that is stored in them: `python tools/notebook_pages.py`.

`make docs` runs it before it builds the site. The pages go to `docs/notebooks`, which is not committed.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = ROOT / "notebooks"
PAGES = ROOT / "docs" / "notebooks"


def page(notebook: dict[str, Any], name: str) -> str:
    """Return a notebook as Markdown.

    Args:
        notebook: The parsed file.
        name: The name of the file, for who wants to run it.
    """
    parts = [part for cell in notebook["cells"] for part in _cell(cell)]
    title, *rest = "\n\n".join(parts).split("\n", 1)
    note = f"This is `notebooks/{name}` with its output. How to run it: [notebooks](../notebooks.md)."
    return f"# Notebook: {title.removeprefix('# ')}\n\n{note}\n{''.join(rest)}\n"


def _cell(cell: dict[str, Any]) -> list[str]:
    text = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        return [text]
    return [f"```python\n{text}\n```", *(_output(each) for each in cell.get("outputs", []))]


def _output(output: dict[str, Any]) -> str:
    """Return an output: HTML in a frame with a light ground, for its colors suppose one; text as a block."""
    data = output.get("data", {})
    if "text/html" in data:
        shown = re.sub(r"\n\s*\n", "\n", "".join(data["text/html"]))  # a blank line would end the HTML
        return f'<div class="notebook-output">\n{shown}\n</div>'
    text = "".join(output.get("text", data.get("text/plain", "")))
    return f"```text\n{text.rstrip()}\n```"


def main() -> int:
    """Write a page for each notebook, and remove those of notebooks that are gone."""
    PAGES.mkdir(exist_ok=True)
    for old in PAGES.glob("*.md"):
        old.unlink()
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        notebook = json.loads(path.read_text(encoding="utf-8"))
        (PAGES / f"{path.stem}.md").write_text(page(notebook, path.name), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
