"""Resolve the versions that `pyproject.toml` allows: `python -m tests.bounds lowest FILE`, or `newest`.

With `lowest` the package's own dependencies have their lowest allowed versions, and everything else, including the
tools, has its locked version if possible. A bound below what the other bounds allow is meaningless, since nobody can
install it, so it is an error. With `newest` nothing is locked.
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
"""Dependencies that the package only requires on another system: here others provide them."""


def declared() -> dict[str, str]:
    """Return the lowest version of each dependency of the package, including its extras.

    Raises:
        SystemExit: A dependency has no lower bound.
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
    """Write the versions to a requirements file.

    Args:
        which: `lowest` or `newest`.
        target: The file.

    Raises:
        SystemExit: A declared bound is too low to be installed.
    """
    uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
    compiled = [uv, "pip", "compile", "--quiet", "--python", "3.11", "--no-annotate", "--all-extras", "--group", "dev"]
    if which == "newest":
        subprocess.run([*compiled, "--upgrade", "pyproject.toml", "-o", target], cwd=ROOT, check=True)
        return
    bounds = declared()
    others = [f"--no-emit-package={name}" for name in bounds]
    locked = [uv, "export", "--quiet", "--frozen", "--all-extras", "--no-hashes", "--no-emit-project", *others]
    # Versions that are already in the file are preferred.
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
