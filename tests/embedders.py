"""Embedders without a model: one that compares words, and one with scripted answers."""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Callable
from functools import cache
from operator import add
from typing import Any

from langchain_core.embeddings import Embeddings


class WordEmbedder(Embeddings):
    """Uses a vector for each word, and their mean for a text: texts with more shared words are nearer."""

    def __init__(self, width: int = 24, model: str = "words") -> None:
        self.width = width
        self.model = model
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        sums = [1e-3] * self.width
        for word in text.lower().split():
            sums = list(map(add, sums, _of(word, self.width)))
        length = math.hypot(*sums)
        return [each / length for each in sums]


@cache
def _of(word: str, width: int) -> list[float]:
    source = random.Random(hashlib.md5(word.encode("utf-8", "replace")).digest())
    return [source.gauss(0, 1) for _ in range(width)]


class ScriptedEmbedder(Embeddings):
    """Answers as a function of its input."""

    def __init__(self, script: Callable[[list[str]], Any], model: str = "scripted") -> None:
        self.script = script
        self.model = model
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        answer: list[list[float]] = self.script(texts)
        return answer

    def embed_query(self, text: str) -> list[float]:
        return self.embed_documents([text])[0]
