"""The Edge Function `memory-embed` itself, built by esbuild and run by node, with a fake of the runtime's model."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from langchain_supabase_memory.errors import EmbeddingError
from langchain_supabase_memory.models import EdgeEmbeddings
from tests.each_case import each_case
from tests.services.data_api import binary, token
from tests.services.edge_function import PATH, vector

ROOT = Path(__file__).parents[2]
USER = token("authenticated", "maya")

pytestmark = pytest.mark.data_api  # it needs what comes from npm


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the function is served."""
    out = tmp_path_factory.mktemp("built") / "index.mjs"
    source = ROOT / "edge_functions" / "memory-embed" / "index.ts"
    built = subprocess.run(
        [str(binary(".bin/esbuild")), str(source), "--format=esm", f"--outfile={out}", "--log-level=warning"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert (built.returncode, built.stderr) == (0, "")
    server = ROOT / "tests" / "services" / "edge_function.mjs"
    with subprocess.Popen(["node", str(server), str(out), PATH], stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            yield process.stdout.readline().strip()
        finally:
            process.terminate()


def post(address: str, document: Any, bearer: str | None = USER) -> httpx.Response:
    headers = {} if bearer is None else {"Authorization": f"Bearer {bearer}"}
    return httpx.post(f"{address}{PATH}", json=document, headers=headers)


def test_the_embedder_and_the_function_understand_each_other(address: str) -> None:
    embedder = EdgeEmbeddings(address, USER, batch=3)
    texts = ["x" * number + " é 🎹" for number in range(7)]
    assert embedder.embed_documents(texts) == [*map(vector, texts)]
    assert embedder.embed_query("kiln") == vector("kiln")


def test_a_server_may_embed_too(address: str) -> None:
    answer = post(address, {"input": ["kiln", ""]}, token("service_role"))
    assert answer.status_code == 200
    assert answer.json() == {"model": "gte-small", "embeddings": [vector("kiln"), vector("")]}


@each_case("bearer", [None, "a.b.c", "a", token("anon")])
def test_who_is_not_signed_in_may_not(address: str, bearer: str | None) -> None:
    answer = post(address, {"input": ["kiln"]}, bearer)
    assert (answer.status_code, answer.json()) == (403, {"error": "Pass a signed-in user's token, or a server's."})
    if bearer:
        with pytest.raises(EmbeddingError, match="refused the key"):
            EdgeEmbeddings(address, bearer).embed_query("kiln")


@each_case("document", [{}, [], None, "kiln", {"input": []}, {"input": "kiln"}, {"input": ["kiln", 1]}])
def test_what_is_no_list_of_texts_is_refused(address: str, document: Any) -> None:
    assert post(address, document).status_code == 400


def test_what_is_no_json_and_what_is_no_post_is_refused(address: str) -> None:
    headers = {"Authorization": f"Bearer {USER}"}
    assert httpx.post(f"{address}{PATH}", content=b"{", headers=headers).status_code == 400
    assert httpx.get(f"{address}{PATH}", headers=headers).status_code == 405


@each_case(("texts", "status"), [(["x"] * 64, 200), (["x"] * 65, 413), (["x" * 24_000], 200), (["x" * 24_001], 413)])  # fmt: skip
def test_it_embeds_only_so_much_at_once(address: str, texts: list[str], status: int) -> None:
    assert post(address, {"input": texts}).status_code == status
