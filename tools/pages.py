"""Count the documentation pages: `python tools/pages.py`. `tools/first_agent.py` times the first tutorial."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
WORDS_A_MINUTE: Final = 200
"""The usual reading speed for technical text."""

_FENCE: Final = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def counts() -> dict[str, int]:
    """Return the counts by kind."""
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    site = [path for path in sorted(DOCS.rglob("*.md")) if not path.is_relative_to(DOCS / "notebooks")]
    every = [*sorted(ROOT.glob("*.md")), *site]
    blocks = [found for path in every for found in _FENCE.findall(path.read_text(encoding="utf-8"))]
    python = [text for language, text in blocks if language == "python"]
    run = [text for text in python if not text.startswith("# myapp/")]
    return {
        "README.md, lines": len(readme.splitlines()),
        "README.md, words": len(readme.split()),
        "README.md, minutes": round(len(_FENCE.sub("", readme).split()) / WORDS_A_MINUTE),
        "pages of the site": len(site),
        "blocks of Python that run": len(run),
        "blocks that are parsed or started": sum(language not in ("", "text") for language, _ in blocks) - len(run),
        "links that are broken": sum(not path.exists() for page in every for path in _linked(page)),
    }


def _linked(page: Path) -> list[Path]:
    prose = _FENCE.sub("", page.read_text(encoding="utf-8"))
    links = re.findall(r"\]\((?!https?:)([^)#]+)", prose)
    return [page.parent / link for link in links]


def told() -> str:
    """Return the counts, one per line."""
    return "".join(f"{name}: {count}\n" for name, count in counts().items())


if __name__ == "__main__":
    sys.stdout.write(told())
