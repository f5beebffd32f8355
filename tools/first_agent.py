"""Run the tutorial `docs/first-agent.md` exactly as written in an empty home, and compare its output.

python tools/first_agent.py

It builds a wheel of this folder, which pip prefers to what the index has. All else comes from the index, so it includes
network time.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "first-agent.md"


def script(page: str) -> str:
    """Return the page's commands up to its last answer, block by block, with its files written in between.

    Args:
        page: The text of the page.
    """
    talk, _, _ = page.partition("\n## Give it a model")
    parts = ["set -e"]
    for language, text in re.findall(r"^```(\w+)\n(.*?)^```$", talk, re.DOTALL | re.MULTILINE):
        if language == "python":
            parts.append(f"cat > {text.splitlines()[0].removeprefix('# ')} <<'END_OF_FILE'\n{text}END_OF_FILE")
        else:
            parts.append(text)
    return "\n".join(parts)


def answers(page: str) -> list[str]:
    """Return the output that the page promises for its commands.

    Args:
        page: The text of the page.
    """
    blocks = re.findall(r"^```bash\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [line.removeprefix("# > ") for text in blocks for line in text.splitlines() if line.startswith("# > ")]


def main() -> int:
    """Run the tutorial.

    Returns:
        0 if the answers match the page.
    """
    page = PAGE.read_text(encoding="utf-8")
    kept = re.compile(r"PATH|LANG|TMPDIR|PIP_.*|SSL_CERT_.*|.*CA_BUNDLE|.*_proxy", re.IGNORECASE)
    uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
    with tempfile.TemporaryDirectory() as home, tempfile.TemporaryDirectory() as wheels:
        subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", wheels, str(ROOT)], check=True)
        environment = {name: value for name, value in os.environ.items() if kept.fullmatch(name)}
        links = [*filter(None, [environment.get("PIP_FIND_LINKS")]), wheels]
        environment |= {"HOME": home, "PIP_FIND_LINKS": " ".join(links)}
        started = time.perf_counter()
        done = subprocess.run(
            ["bash", "-c", script(page)], cwd=home, env=environment, stdout=subprocess.PIPE, text=True, check=False
        )
        seconds = time.perf_counter() - started
    told, said = answers(page), done.stdout.splitlines()[-len(answers(page)) :]
    if done.returncode or said != told:
        sys.stderr.write("The tutorial does not lead to its answers:\n" + done.stdout)
        return 1
    sys.stdout.write(f"{seconds:.0f} seconds from an empty folder to the last of {len(told)} answers\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
