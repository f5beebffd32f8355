"""Resolve what `pyproject.toml` allows: `python -m tests.bounds lowest FILE`, or `newest`.

With `lowest` the package's own dependencies are at the lowest versions that they may have, and everything else, the
tools among it, is as it is locked, where it can be. A bound that lies below what the others allow says nothing, as
nobody can install it, so it is an error. With `newest` nothing is locked.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parent.parent
_REQUIREMENT: Final = re.compile(r"(?P<name>[\w.-]+)(\[[\w,-]+\])?(>=(?P<least>[\w.]+))?")

_ELSEWHERE: Final = frozenset({"tzdata"} if sys.platform != "win32" else set())
"""What the package asks for on another system alone: here it is what others bring."""


def declared() -> dict[str, str]:
    """The package's dependencies, those of its extras among them, and the lowest version of each.

    Raises:
        SystemExit: One has none.
    """
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    found = {}
    for requirement in chain(project["dependencies"], *project["optional-dependencies"].values()):
        parts = _REQUIREMENT.match(requirement)
        if parts is None or parts["name"] == project["name"]:
            continue
        if parts["least"] is None:
            raise SystemExit(f"{requirement} in pyproject.toml says no lowest version; write name>=version.")
        found[parts["name"]] = parts["least"]
    return found


def resolve(which: str, target: Path) -> None:
    """Write the versions to a file of requirements.

    Args:
        which: `lowest` or `newest`.
        target: The file.

    Raises:
        SystemExit: A declared bound is below what can be installed.
    """
    uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
    compiled = [uv, "pip", "compile", "--quiet", "--python", "3.11", "--no-annotate", "--all-extras", "--group", "dev"]
    if which == "newest":
        subprocess.run([*compiled, "--upgrade", "pyproject.toml", "-o", target], cwd=ROOT, check=True)
        return
    bounds = declared()
    others = [f"--no-emit-package={name}" for name in bounds]
    locked = [uv, "export", "--quiet", "--frozen", "--all-extras", "--no-hashes", "--no-emit-project", *others]
    # What is in the file already is preferred.
    subprocess.run([*locked, "-o", target], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    subprocess.run(
        [*compiled, "--resolution", "lowest-direct", "pyproject.toml", "-o", target],
        cwd=ROOT, check=True, stdout=subprocess.DEVNULL,
    )  # fmt: skip
    resolved = dict(re.findall(r"^([\w.-]+)(?:\[[\w,-]+\])?==(\S+)", target.read_text(), re.MULTILINE))
    here = {name: least for name, least in bounds.items() if name not in _ELSEWHERE}
    wrong = [f"{name}>={least} ({resolved[name]})" for name, least in here.items() if resolved[name] != least]
    if wrong:
        raise SystemExit(f"Raise these bounds in pyproject.toml to what can be installed: {', '.join(wrong)}.")


if __name__ == "__main__":
    resolve(sys.argv[1], Path(sys.argv[2]).absolute())
