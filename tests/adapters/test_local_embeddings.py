"""The local embedder: its models, their location, and the errors if they are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from langchain_supabase_memory import LocalEmbeddings, SupabaseMemory
from langchain_supabase_memory.effects import Embed
from langchain_supabase_memory.errors import ConfigurationError, EmbeddingError, MissingDependencyError
from langchain_supabase_memory.models import EmbeddingModel
from tests.services import tiny_onnx

CONN = "postgresql://postgres:x@127.0.0.1:1/none"
FILES = {"english": "model_optimized.onnx", "multilingual": "onnx/model.onnx"}


@pytest.fixture(params=[*FILES])
def local(request: pytest.FixtureRequest, tmp_path: Path) -> LocalEmbeddings:
    tiny_onnx.write(tmp_path, FILES[request.param])
    return LocalEmbeddings(request.param, path=tmp_path)


async def test_texts_and_questions_are_embedded(local: LocalEmbeddings) -> None:
    kiln, glaze = local.embed_documents(["kiln", "glaze"])
    assert len(kiln) == tiny_onnx.WIDTH
    assert sum(number * number for number in kiln) == pytest.approx(1, abs=1e-4)
    place = tiny_onnx.WORDS.index("kiln")
    is_e5 = "e5" in local.model
    # What the model was trained to read before a text has its part in the vector, and a question has another.
    assert (kiln[place] == pytest.approx(1)) is not is_e5
    assert (kiln[tiny_onnx.WORDS.index("passage")] > 0) is is_e5
    asked = await local.aembed_query("kiln")
    assert (asked[tiny_onnx.WORDS.index("query")] > 0) is is_e5
    assert asked == local.embed_query("kiln")
    assert kiln != glaze
    assert local.embed_documents([]) == []


async def test_it_serves_a_memory_under_its_models_name(local: LocalEmbeddings) -> None:
    model = EmbeddingModel(local)
    assert model.name == local.model
    assert SupabaseMemory.from_conn_string(CONN, user_id="u", embeddings=local)._services.embedder_name == local.model
    assert len(model.answer(Embed(("kiln", "glaze")))) == 2
    assert len(await model.aanswer(Embed(("kiln",), is_query=True))) == 1


def test_what_is_not_there_is_an_error_with_the_next_action(tmp_path: Path) -> None:
    for where in ({"path": tmp_path / "nothing"}, {"cache_dir": tmp_path, "offline": True}):
        embedder = LocalEmbeddings("english", **where)
        with pytest.raises(EmbeddingError, match="could not be loaded") as refused:
            embedder.embed_query("a secret question")
        assert "path=" in refused.value.hint
        assert str(tmp_path) in refused.value.hint
        assert "secret" not in str(refused.value)
        with pytest.raises(EmbeddingError, match="path="):
            EmbeddingModel(embedder, attempts=1).answer(Embed(("a",)))


def test_a_language_is_one_of_the_choices() -> None:
    wrong: Any
    for wrong in ("german", "", None, 5):
        with pytest.raises(ConfigurationError, match="language"):
            LocalEmbeddings(wrong)


def test_it_is_never_switched_on_by_itself(tmp_path: Path) -> None:
    memory = SupabaseMemory.embedded(tmp_path, user_id="u")
    assert memory._services.embeddings is None
    assert SupabaseMemory.from_conn_string(CONN, user_id="u")._services.embeddings is None


def test_without_the_extra_it_is_named() -> None:
    script = """
import sys
sys.modules["fastembed"] = None
from langchain_supabase_memory import LocalEmbeddings
try:
    LocalEmbeddings()
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(MissingDependencyError.__name__)
    assert "pip install 'langchain-supabase-memory[local]'" in done.stdout
