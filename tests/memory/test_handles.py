"""Each verb is written once, as a function: what people hold is what `tools/handles.py` makes of it."""

from __future__ import annotations

import inspect
import pydoc
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from langchain_supabase_memory import (
    SECRETS,
    BoardPolicy,
    ChunkPolicy,
    ContextBudget,
    MemoryConfig,
    Retention,
    SummaryPolicy,
    SupabaseMemory,
)
from langchain_supabase_memory.memory.config import Settings
from langchain_supabase_memory.operations.recall.query import Filters
from langchain_supabase_memory.settings import BreakerPolicy, ManifestPolicy
from langchain_supabase_memory.telemetry import Metrics
from tests.embedders import WordEmbedder
from tools.handles import HANDLES, IDS, INJECTED, SCOPES, Handle, Verb, _with_twins

ROOT = Path(__file__).parents[2]
KNOWN = {"services", *SCOPES, *(each.partition(":")[0] for each in INJECTED)}
"""What a handle knows, so that its caller does not say it."""
DOORS = ("__init__", "from_url", "from_client", "from_conn_string", "embedded")
CONFIG: dict[str, Any] = {
    "time_zone": "Asia/Manila",
    "outbox_limit": 7,
    "reranker": lambda _, documents: documents,
    "expander": lambda _: [],
    "policy": SummaryPolicy(messages=4),
    "board_policy": BoardPolicy(update_frequency=3),
    "chunking": ChunkPolicy(mode="background"),
    "recall": "user",
    "manifests": ManifestPolicy(share=0.5),
    "breaker": BreakerPolicy(failures=2),
    "metrics": Metrics(),
}
UNLIKE_THE_DEFAULT: dict[str, Any] = {
    "model": lambda _: "A summary.",
    "embeddings": WordEmbedder(),
    "budget": ContextBudget(characters=1234),
    "retention": Retention(max_turns=5),
    "redactor": SECRETS,
    "config": MemoryConfig(**CONFIG),
}


def check(root: Path) -> subprocess.CompletedProcess[str]:
    """What the script says of the modules below a folder."""
    command = [sys.executable, str(root / "tools/handles.py"), "--check"]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def held(handle: Handle) -> type:
    found = getattr(import_module(f"langchain_supabase_memory.memory.{handle.module}"), handle.name)
    assert isinstance(found, type)
    return found


def verbs() -> Iterator[tuple[Handle, str, Verb]]:
    for handle in HANDLES:
        for name, verb in handle.verbs.items():
            yield handle, name, verb


def test_what_is_checked_in_is_what_the_script_writes() -> None:
    done = check(ROOT)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_function_that_was_changed_alone_is_noticed(tmp_path: Path) -> None:
    for name in ("tools", "langchain_supabase_memory"):
        shutil.copytree(ROOT / name, tmp_path / name)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert check(tmp_path).returncode == 0
    path = tmp_path / "langchain_supabase_memory/operations/work.py"
    path.write_text(path.read_text().replace("def queue(*, ", "def queue(*, since: str | None = None, "))
    path = tmp_path / "langchain_supabase_memory/long_term/base.py"
    path.write_text(
        path.read_text().replace("  effects.run(self._forgetting(ids))", "  effects.run(self._forgetting([*ids]))")
    )
    done = check(tmp_path)
    assert done.returncode == 1
    assert "memory/work.py" in done.stderr
    assert "long_term/base.py" in done.stderr
    assert "memory/conversation.py" not in done.stderr


SYNC = """class Keeper:
    @decorated
    def get(self, key: str) -> str:
        \"\"\"The value — of a key.

        Args:
            key: The key.
        \"\"\"
        self.note("run(é)")
        return self.batch([self.perform(key)])[0]  # of one

    @decorated
    async def aget(self, key: str) -> str:
        \"\"\"The async twin of `get`.\"\"\"
"""


def test_a_twin_has_the_text_of_its_function_but_for_what_is_awaited() -> None:
    written = _with_twins(SYNC)
    assert written.removeprefix(SYNC).splitlines() == [
        '        self.note("run(é)")',
        "        return (await self.abatch([self.perform(key)]))[0]  # of one",
    ]
    assert _with_twins(written) == written
    bare = SYNC.replace(
        '        """The value — of a key.\n\n        Args:\n            key: The key.\n        """\n', ""
    )
    assert _with_twins(bare).removeprefix(bare) == written.removeprefix(SYNC)
    by_hand = SYNC.replace("of `get`.", "of `get`, in a thread.")
    assert _with_twins(by_hand) == by_hand


def test_a_verb_has_both_colors_with_the_parameters_of_its_function() -> None:
    for handle, name, verb in verbs():
        case = f"{handle.name}.{name}"
        sync, twin = getattr(held(handle), name), getattr(held(handle), f"a{name}")
        signature = inspect.signature(sync)
        assert inspect.signature(twin) == signature, case
        assert (inspect.iscoroutinefunction(sync), inspect.iscoroutinefunction(twin)) == (False, True), case
        assert twin.__doc__ == f"The async twin of `{name}`.", case
        path, _, function = verb.function.rpartition(".")
        original = inspect.signature(getattr(import_module(f"langchain_supabase_memory.{path}"), function))
        returned = str(signature.return_annotation).replace("builtins.list", "list")
        assert original.return_annotation == f"Flow[{returned}]", case
        shown = dict(signature.parameters)
        del shown["self"]
        for each in original.parameters.values():
            if each.annotation == "Filters":
                for part in fields(Filters):
                    assert shown.pop(part.name).default == part.default, f"{case}({part.name})"
            elif each.name in verb.public:
                assert shown.pop(each.name).default is None, f"{case}({each.name})"
            elif each.name in verb.fixed or each.name in verb.hidden:
                assert each.name not in shown, f"{case}({each.name})"
            elif each.name in KNOWN and (each.name not in shown or each.kind is not each.KEYWORD_ONLY):
                continue
            else:
                assert (shown[each.name].default, shown[each.name].kind) == (each.default, each.kind), case
                del shown[each.name]
        ids = {name for given in IDS.values() for name in given}
        assert set(shown) <= (ids if handle.about == "memory" else set()), case


def test_nothing_that_is_held_has_no_function() -> None:
    for handle in HANDLES:
        written = {
            name for name, each in vars(held(handle)).items() if inspect.isfunction(each) and not name.startswith("_")
        }
        assert written == {*handle.verbs, *(f"a{name}" for name in handle.verbs)}, handle.name


@pytest.mark.parametrize("handle", HANDLES, ids=lambda handle: handle.name)
def test_every_keyword_is_named_and_has_a_type(handle: Handle) -> None:
    seen = 0
    for name, method in inspect.getmembers(
        held(handle), lambda each: inspect.isfunction(each) or inspect.ismethod(each)
    ):
        if (name.startswith("_") and name != "__init__") or name in ("answering", "observing"):  # of any flow
            continue
        signature = inspect.signature(method)
        seen += 1
        for each in signature.parameters.values():
            assert each.kind is not each.VAR_KEYWORD, name
            assert each.name == "self" or each.annotation is not each.empty, f"{name}({each.name})"
            assert not re.search(r"\bAny\b", str(each.annotation)), f"{name}({each.name})"
        assert not re.search(r"\bAny\b", str(signature.return_annotation)), name
    assert seen >= 2 * len(handle.verbs)


@pytest.mark.parametrize("caller", DOORS)
def test_help_shows_every_setting(caller: str) -> None:
    shown = pydoc.plain(pydoc.render_doc(getattr(SupabaseMemory, caller)))
    signature, _, text = shown.partition("Args:")
    for field in fields(Settings):
        assert f"{field.name}: " in signature
        assert re.search(rf"^ +{field.name}: \S", text, re.MULTILINE), field.name


def test_a_memory_for_another_user_has_every_setting() -> None:
    for kind, unlike in ((Settings, UNLIKE_THE_DEFAULT), (MemoryConfig, CONFIG)):
        assert sorted(unlike) == sorted(field.name for field in fields(kind)), "name the new one here"
        for field in fields(kind):
            assert unlike[field.name] != field.default, field.name
    memory = SupabaseMemory.from_conn_string("postgresql://u@127.0.0.1:1/x", agent_id="b", **UNLIKE_THE_DEFAULT)
    for theirs in (memory.for_token({"sub": "ana", "role": "authenticated"}), memory.for_user("ana")):
        services, same = theirs._services, memory._services
        assert services.settings is same.settings
        assert services.config is UNLIKE_THE_DEFAULT["config"]
        # What was made once is not made again.
        for name in ("model", "embeddings", "reranker", "expander", "redactor", "metrics", "agent_id"):
            assert getattr(services, name) is getattr(same, name) is not None, name


def test_a_handle_shows_its_ids_and_asks_nothing() -> None:
    url = "postgresql://u:canary@127.0.0.1:1/x"
    own = SupabaseMemory.from_conn_string(url, user_id="maya", model=lambda _: "x")
    memory = SupabaseMemory.from_conn_string(url, model=lambda _: "x")
    assert repr(own.conversation("studio")) == "Conversation('studio', user_id='maya', agent_id='default')"
    other = memory.for_user("ben").conversation("studio", agent_id="tutor")
    assert repr(other) == "Conversation('studio', user_id='ben', agent_id='tutor')"
    assert other._key == memory._services.key("studio", "ben", "tutor")
    assert memory.health().failures == 0
