"""`examples/web_page`: it type checks, esbuild builds it, and its `chat.ts` calls the service and the Data API.

`test_examples_browser.py` opens the page itself.
"""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.project.test_examples_fastapi import QUESTIONS, THREADS, USERS, service
from tests.services.data_api import binary
from tests.services.examples import EXAMPLES, copied, started
from tests.services.postgres import free_port
from tests.services.project import PUBLISHABLE, Project

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]  # a server starts first, on a machine that may be busy

SERVICES = Path(__file__).parents[1] / "services"


@pytest.fixture(scope="module")
def address(project: Project, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of the service that the page chats through."""
    folder = tmp_path_factory.mktemp("service")
    with service(folder, SUPABASE_URL=project.url, SUPABASE_PUBLISHABLE_KEY=PUBLISHABLE) as url:
        yield url


def with_modules(folder: Path) -> Path:
    """The folder, as it is after `npm install`."""
    (folder / "node_modules").symlink_to(SERVICES / "node_modules")
    return folder


@contextmanager
def page(folder: Path, *, port: int | None = None, **settings: str) -> Iterator[tuple[str, Path]]:
    """The address of the page, as `npm start` serves it, and what that says."""
    folder, port = with_modules(copied("web_page", folder)), port or free_port()
    # What npm would start, by itself: npm ends without ending it.
    command = shlex.split(json.loads((folder / "package.json").read_text())["scripts"]["start"])
    settings = {"SUPABASE_PUBLISHABLE_KEY": PUBLISHABLE, "PORT": str(port), **settings}
    with started(command, folder, "/page.js", settings, port=port) as served:
        yield served


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """`chat.ts` as JavaScript."""
    out = tmp_path_factory.mktemp("built") / "chat.mjs"
    command = [str(binary(".bin/esbuild")), "chat.ts", "--format=esm", f"--outfile={out}", "--log-level=warning"]
    built = subprocess.run(command, cwd=EXAMPLES / "web_page", capture_output=True, text=True, check=False)
    assert (built.returncode, built.stderr) == (0, "")
    return out


def visits(built: Path, project: Project, address: str, users: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """What each of several people at the page saw, all at once."""
    given = {"module": str(built), "url": project.url, "key": PUBLISHABLE, "service": address, "users": users}
    run = subprocess.run(
        ["node", "page.mjs"],
        cwd=SERVICES, input=json.dumps(given), capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    seen: list[dict[str, Any]] = json.loads(run.stdout)
    return seen


def test_two_people_chat_at_once_and_each_sees_their_own_messages_and_board(
    built: Path, project: Project, address: str, user_id: str
) -> None:
    users = [
        {"token": project.token(f"{user_id}-{name}"), "thread": "studio", "says": [said, QUESTIONS[name]]}
        for name, said in USERS.items()
    ]
    seen = visits(built, project, address, users)
    for mine, (name, said) in zip(seen, USERS.items(), strict=True):
        assert mine["before"] is None
        assert said in mine["answers"][1]
        assert [(each["sequence"], each["role"], each["text"]) for each in mine["messages"]] == [
            (0, "user", said),
            (1, "assistant", mine["answers"][0]),
            (2, "user", QUESTIONS[name]),
            (3, "assistant", mine["answers"][1]),
        ]
        assert any(said in item["text"] for item in mine["board"]["items"])
        assert 0 < mine["tokens"]["conversation"] <= mine["tokens"]["prompt"], "a head costs a short one more"
        assert mine["work"] in ("idle", "due")
        assert mine["summarized"]["conversation"] == mine["tokens"]["conversation"]
        (others,) = (text for other, text in USERS.items() if other != name)
        assert others not in json.dumps(mine)


@pytest.mark.parametrize("thread", THREADS)
def test_any_conversation_opens(built: Path, project: Project, address: str, user_id: str, thread: str) -> None:
    (seen,) = visits(
        built, project, address, [{"token": project.token(user_id), "thread": thread, "says": [USERS["maya"]]}]
    )
    assert [each["text"] for each in seen["messages"]] == [USERS["maya"], *seen["answers"]]
    assert seen["tokens"]["conversation"] > 0


def test_whose_token_is_not_good_is_told_so(built: Path, project: Project, address: str, user_id: str) -> None:
    users = [{"token": project.token(user_id, expires_in=-3600), "thread": "studio", "says": ["Hello"]}]
    with pytest.raises(AssertionError, match="JWT expired"):
        visits(built, project, address, users)


def test_the_service_lets_the_page_in_and_no_other(address: str) -> None:
    asked = {"Access-Control-Request-Method": "POST", "Access-Control-Request-Headers": "authorization,content-type"}
    for origin, allowed in (("http://127.0.0.1:5173", "http://127.0.0.1:5173"), ("https://elsewhere.example", None)):
        answer = httpx.options(f"{address}/chat?thread=studio", headers={**asked, "Origin": origin})
        assert answer.headers.get("access-control-allow-origin") == allowed


def test_npm_start_builds_and_serves_the_page(tmp_path: Path) -> None:
    with page(tmp_path, SUPABASE_URL="http://127.0.0.1:1") as (url, log):
        document = httpx.get(f"{url}/").text
        assert '<script type="module" src="page.js">' in document
        script = httpx.get(f"{url}/page.js").text
        assert "http://127.0.0.1:1" in script
        assert "http://127.0.0.1:8000" in script
        assert "signInWithPassword" in script
        assert "rror" not in log.read_text()
    # Each part that the script looks for is on the page.
    asked = {*(EXAMPLES / "web_page" / "page.ts").read_text().split('"')} & {
        "sign-in", "talk", "messages", "board", "summary", "summary-state", "summarize",
    }  # fmt: skip
    assert len(asked) == 7
    assert all(f'id="{name}"' in document for name in [*asked, "trouble"])


def test_the_types_hold(tmp_path: Path) -> None:
    """esbuild only strips them."""
    folder = with_modules(copied("web_page", tmp_path))

    def checked() -> tuple[int, str]:
        program, *arguments = shlex.split(json.loads((folder / "package.json").read_text())["scripts"]["check"])
        run = subprocess.run(
            [str(binary(f".bin/{program}")), *arguments], cwd=folder, capture_output=True, text=True, check=False
        )
        return run.returncode, run.stdout + run.stderr

    assert checked() == (0, "")
    script = folder / "page.ts"
    script.write_text(script.read_text().replace("({ role, text })", "({ role, words })"))
    code, said = checked()
    assert code != 0
    assert "page.ts" in said
    assert "'words' does not exist on type 'Message'" in said


def test_the_versions_are_those_that_are_tested() -> None:
    page, tested = (json.loads((folder / "package.json").read_text()) for folder in (EXAMPLES / "web_page", SERVICES))
    for kind in ("dependencies", "devDependencies"):
        assert page[kind].items() <= tested[kind].items()
