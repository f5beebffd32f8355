"""`examples/shared_space`: three users with real tokens, over supabase-js and PostgREST."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from langchain_supabase_memory import SupabaseMemory
from tests.services.data_api import binary
from tests.services.examples import EXAMPLES, copied
from tests.services.postgres import Cluster
from tests.services.project import PUBLISHABLE, Project

SERVICES = Path(__file__).parents[1] / "services"
NO_SPACE = "there is no such space, or you are not in it"
PRINTED = f"""\
Ben is in: Studio (contributor)
Maya: The kiln is at cone six.
Ben: Then I fire on Friday.
On the board, by Ben: Glaze 12 runs above cone five.
Eve is in: []
Eve reads the plan: {NO_SPACE}
Eve reads the board: {NO_SPACE}
Eve says something: {NO_SPACE}
Ben reads the plan: {NO_SPACE}
Ben reads the board: {NO_SPACE}
Maya still has 2 messages and 1 item.
"""


@pytest.fixture
def team_project(cluster: Cluster, shared: str, user_id: str) -> Iterator[Project]:
    """A project with three users, who sign in with their names as passwords."""
    with Project(cluster, shared) as project:
        for name in ("maya", "ben", "eve"):
            project.passwords[f"{name}@example.com"] = (f"{user_id}-{name}", name)
        yield project


def start(folder: Path, project: Project, **variables: str) -> subprocess.CompletedProcess[str]:
    """Run `npm start`, after `npm install`."""
    assert binary("@supabase/supabase-js").is_dir()
    program, *arguments = shlex.split(json.loads((folder / "package.json").read_text())["scripts"]["start"])
    settings = {"SUPABASE_URL": project.url, "SUPABASE_PUBLISHABLE_KEY": PUBLISHABLE}
    settings |= {name.upper(): f"{name}@example.com:{name}" for name in ("maya", "ben", "eve")}
    return subprocess.run(
        [program, *arguments], cwd=folder, env={**os.environ, **settings, **variables},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = copied("shared_space", tmp_path)
    (folder / "node_modules").symlink_to(SERVICES / "node_modules")
    return folder


def test_two_users_share_a_space_and_a_third_sees_nothing(
    folder: Path, team_project: Project, cluster: Cluster, shared: str, user_id: str
) -> None:
    for _ in range(2):  # it may be started again
        done = start(folder, team_project)
        assert (done.returncode, done.stdout) == (0, PRINTED), done.stderr
    with SupabaseMemory.from_conn_string(cluster.conn_string(shared)) as server:
        held = server.for_user(f"{user_id}-ben").spaces.shared_data()
        assert [(each.role, each.messages, each.items) for each in held.spaces] == [(None, 1, 1)] * 2
        assert not server.for_user(f"{user_id}-eve").spaces.shared_data().spaces
        assert not server.for_user(f"{user_id}-eve").conversations()


def test_who_cannot_sign_in_is_named(folder: Path, team_project: Project) -> None:
    done = start(folder, team_project, EVE="eve@example.com:wrong")
    assert done.returncode != 0
    assert "EVE: Invalid login credentials" in done.stderr


def test_the_versions_are_those_that_are_tested() -> None:
    example, tested = (
        json.loads((folder / "package.json").read_text()) for folder in (EXAMPLES / "shared_space", SERVICES)
    )
    assert example["dependencies"].items() <= tested["dependencies"].items()
