"""Every Python block of the README runs as it is written."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.prompts import ChatPromptTemplate, MessagesPlaceholder

from langchain_supabase_memory.demo.model import OfflineQuotingModel
from langchain_supabase_memory.extractive import ExtractiveSummariser

README = (Path(__file__).parent.parent / "README.md").read_text()


def test_the_python_blocks_run_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conn_string: str, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    prompt = ChatPromptTemplate.from_messages([MessagesPlaceholder("history"), ("human", "{input}")])
    names: dict[str, Any] = {
        "conn_string": conn_string,
        "model": OfflineQuotingModel(),
        "summary_model": ExtractiveSummariser(),
        "prompt": prompt,
        "embeddings": DeterministicFakeEmbedding(size=32),
    }
    blocks = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    assert len(blocks) >= 3
    for block in blocks:
        exec(block, names)
    shown = capsys.readouterr().out
    assert "0 My kiln shows E-47\n1 That is the thermocouple." in shown
    assert names["memory"].count(thread_id="studio") == 8


def test_every_file_that_is_linked_exists() -> None:
    for link in re.findall(r"\]\(((?!https?:)[^)]+)\)", README):
        assert (Path(__file__).parent.parent / link).exists(), link


def test_the_tree_of_rooms_is_the_one_that_is_checked() -> None:
    import tomllib

    settings = tomllib.loads((Path(__file__).parent.parent / "pyproject.toml").read_text())
    layers = settings["tool"]["importlinter"]["contracts"][0]["layers"]
    drawn = README.split("## Architecture")[1].split("```")[1]
    for layer in layers:
        for room in layer.split(" | "):
            assert re.search(rf"\b{room.split('.')[1]}\b", drawn), room
