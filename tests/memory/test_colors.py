"""Each verb is written once, as a flow: both colors, and every keyword, are what `tools/colors.py` makes of it."""

from __future__ import annotations

import inspect
import pydoc
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from langchain_supabase_memory import (
    SECRETS,
    BoardPolicy,
    BreakerPolicy,
    ChunkPolicy,
    ContextBudget,
    Conversation,
    ManifestPolicy,
    Metrics,
    Retention,
    SummaryPolicy,
    SupabaseMemory,
)
from langchain_supabase_memory.memory.flows.conversation import ConversationFlows
from langchain_supabase_memory.memory.flows.memory import MemoryFlows
from langchain_supabase_memory.memory.flows.rollout import RolloutFlows
from langchain_supabase_memory.memory.flows.work import WorkFlows
from langchain_supabase_memory.memory.rollouts import Rollouts
from langchain_supabase_memory.memory.services import Settings
from langchain_supabase_memory.memory.work import Work
from langchain_supabase_memory.operations.recall.query import Filters
from tests.embedders import WordEmbedder

ROOT = Path(__file__).parents[2]
HELD = {SupabaseMemory: MemoryFlows, Conversation: ConversationFlows, Work: WorkFlows, Rollouts: RolloutFlows}
DOORS = ("__init__", "from_url", "from_client", "from_conn_string", "embedded")
UNLIKE_THE_DEFAULT: dict[str, Any] = {
    "time_zone": "Asia/Manila",
    "outbox_limit": 7,
    "model": lambda _: "A summary.",
    "embeddings": WordEmbedder(),
    "reranker": lambda _, documents: documents,
    "expand": lambda _: [],
    "budget": ContextBudget(characters=1234),
    "policy": SummaryPolicy(messages=4),
    "board_policy": BoardPolicy(update_frequency=3),
    "chunking": ChunkPolicy(mode="background"),
    "recall": "user",
    "retention": Retention(max_turns=5),
    "manifests": ManifestPolicy(share=0.5),
    "breaker": BreakerPolicy(failures=2),
    "metrics": Metrics(),
    "redact": SECRETS,
}


def check(root: Path) -> subprocess.CompletedProcess[str]:
    """What the script says of the modules below a folder."""
    command = [sys.executable, str(root / "tools/colors.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def verbs() -> Iterator[tuple[type, str, Callable[..., Any]]]:
    for held, flows in HELD.items():
        for name, flow in vars(flows).items():
            if inspect.isfunction(flow) and not name.startswith("_"):
                yield held, name, flow


def test_what_is_checked_in_is_what_the_script_writes() -> None:
    done = check(ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_flow_that_was_changed_alone_is_noticed(tmp_path: Path) -> None:
    for name in ("tools", "langchain_supabase_memory"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert check(tmp_path).returncode == 0
    path = tmp_path / "langchain_supabase_memory/memory/flows/work.py"
    path.write_text(path.read_text().replace("def queue(self)", "def queue(self, *, user_id: str | None = None)"))
    done = check(tmp_path)
    assert done.returncode == 1
    assert "memory/work.py" in done.stderr
    assert "memory/conversation.py" not in done.stderr


@pytest.mark.parametrize(
    ("held", "name", "flow"), [pytest.param(*each, id=f"{each[0].__name__}.{each[1]}") for each in verbs()]
)
def test_a_verb_has_both_colors_with_the_signature_of_its_flow(held: type, name: str, flow: Callable[..., Any]) -> None:
    sync, twin = getattr(held, name), getattr(held, f"a{name}")
    signature = inspect.signature(sync)
    assert inspect.signature(twin) == signature
    assert (inspect.iscoroutinefunction(sync), inspect.iscoroutinefunction(twin)) == (False, True)
    assert inspect.signature(flow).return_annotation == f"Flow[{signature.return_annotation}]"
    assert twin.__doc__ == f"The async twin of `{name}`."
    expected: dict[str, Any] = {}
    for each in inspect.signature(flow).parameters.values():
        if each.annotation == "Filters":
            expected |= {field.name: field.default for field in fields(Filters)}
        else:
            expected[each.name] = each.default
    assert {each.name: each.default for each in signature.parameters.values()} == expected
    positional = [each for each in signature.parameters.values() if each.kind is not each.KEYWORD_ONLY]
    assert [each.name for each in positional] == [
        each.name for each in inspect.signature(flow).parameters.values() if each.kind is not each.KEYWORD_ONLY
    ]


@pytest.mark.parametrize("held", HELD)
def test_nothing_that_is_held_has_no_flow(held: type) -> None:
    flows = {name for owner, name, _ in verbs() if owner is held}
    written = {name for name, each in vars(held).items() if inspect.isfunction(each) and not name.startswith("_")}
    assert written == flows | {f"a{name}" for name in flows}


@pytest.mark.parametrize("held", HELD)
def test_every_keyword_is_named_and_has_a_type(held: type) -> None:
    seen = 0
    for name, method in inspect.getmembers(held, lambda each: inspect.isfunction(each) or inspect.ismethod(each)):
        if (name.startswith("_") and name != "__init__") or name in ("perform", "aperform"):  # whatever a step gives
            continue
        signature = inspect.signature(method)
        seen += 1
        for each in signature.parameters.values():
            assert each.kind is not each.VAR_KEYWORD, name
            assert each.name == "self" or each.annotation is not each.empty, f"{name}({each.name})"
            assert not re.search(r"\bAny\b", str(each.annotation)), f"{name}({each.name})"
        assert not re.search(r"\bAny\b", str(signature.return_annotation)), name
    assert seen > 8


@pytest.mark.parametrize("door", DOORS)
def test_help_shows_every_setting(door: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(getattr(SupabaseMemory, door)))
    signature, _, text = shown.partition("Args:")
    for field in fields(Settings):
        assert f"{field.name}: " in signature
        assert re.search(rf"^ +{field.name}: \S", text, re.MULTILINE), field.name


def test_a_memory_for_another_user_has_every_setting() -> None:
    assert sorted(UNLIKE_THE_DEFAULT) == sorted(field.name for field in fields(Settings)), "name the new one here"
    memory = SupabaseMemory.from_conn_string("postgresql://u@127.0.0.1:1/x", agent_id="b", **UNLIKE_THE_DEFAULT)
    theirs = memory.as_user({"sub": "ana", "role": "authenticated"})
    # What was made once is not made again.
    models = {name: getattr(memory, name) for name in ("model", "embeddings", "reranker")}
    expected = {**UNLIKE_THE_DEFAULT, **models, "expand": memory.expander, "redact": memory.redactor}
    for field in fields(Settings):
        assert UNLIKE_THE_DEFAULT[field.name] != field.default, field.name
        assert getattr(theirs.settings, field.name) is expected[field.name], field.name
    for name in ("model", "embeddings", "reranker", "expander", "redactor", "metrics", "agent_id"):
        assert getattr(theirs, name) is getattr(memory, name) is not None, name


def test_a_handle_shows_its_ids_and_asks_nothing() -> None:
    url = "postgresql://u:canary@127.0.0.1:1/x"
    own = SupabaseMemory.from_conn_string(url, user_id="maya", model=lambda _: "x")
    memory = SupabaseMemory.from_conn_string(url, model=lambda _: "x")
    assert repr(own.conversation("studio")) == "Conversation('studio', user_id='maya', agent_id='default')"
    other = memory.conversation("studio", user_id="ben", agent_id="tutor")
    assert repr(other) == "Conversation('studio', user_id='ben', agent_id='tutor')"
    assert other.key == memory.key("studio", "ben", "tutor")
    assert memory.health().failures == 0
