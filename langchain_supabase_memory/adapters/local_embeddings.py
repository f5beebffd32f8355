"""Local embedder: ONNX models through fastembed, without a key and without torch."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Final

from langchain_core.embeddings import Embeddings

from langchain_supabase_memory import fork
from langchain_supabase_memory.checks import choice
from langchain_supabase_memory.errors import EmbeddingError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

ENGLISH: Final = "BAAI/bge-small-en-v1.5"
MULTILINGUAL: Final = "intfloat/multilingual-e5-small"
MODELS: Final = {"english": ENGLISH, "multilingual": MULTILINGUAL}
"""The choices and the models' names at Hugging Face. Both have the MIT license and 384 dimensions."""

_PREFIXES: Final = {MULTILINGUAL: ("query: ", "passage: ")}
"""The prefixes that a model was trained to read before a query and before a document; see its card at Hugging Face."""

_WIDTH: Final = 384
_GUARD: Final = fork.Lock()


class LocalEmbeddings(Embeddings):
    """Embeds on this machine. The model is downloaded from Hugging Face once, at the first text, into a folder.

    ```python
    SupabaseMemory.embedded("./memory", embeddings=LocalEmbeddings("multilingual", cache_dir="./models"))
    ```

    Args:
        language: `english` (bge-small-en-v1.5, 67 MB) or `multilingual` (multilingual-e5-small, 470 MB, about a hundred
            languages).
        cache_dir: The folder of the models; by default fastembed's, which `FASTEMBED_CACHE_PATH` names.
        path: A folder with the model's files, for a closed network: nothing is downloaded.
        offline: Whether to use only what is already in `cache_dir`.
        threads: The maximum number of threads of one call; by default onnxruntime decides.

    Raises:
        MissingDependencyError: The extra `local` is not installed.
        ConfigurationError: `language` is not one of the choices.
    """

    def __init__(
        self,
        language: str = "english",
        *,
        cache_dir: str | Path | None = None,
        path: str | Path | None = None,
        offline: bool = False,
        threads: int | None = None,
    ) -> None:
        choice("language", language, MODELS)
        if find_spec("fastembed") is None:
            raise MissingDependencyError("An embedder on this machine", "local")
        self.model = MODELS[language]
        self._cache_dir = None if cache_dir is None else str(cache_dir)
        self._path = None if path is None else str(path)
        self._offline = offline
        self._threads = threads
        self._query, self._passage = _PREFIXES.get(self.model, ("", ""))
        self._loaded: Any = None
        self._lock = fork.Lock()
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        if self._loaded is not None:
            fork.leave_to_parent(self._loaded)  # it uses threads, which a child does not inherit
            self._loaded = None

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text.

        Raises:
            EmbeddingError: The model could not be downloaded or read.
        """
        return self._vectors(f"{self._passage}{text}" for text in texts)

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query.

        Raises:
            EmbeddingError: The model could not be downloaded or read.
        """
        return self._vectors([f"{self._query}{text}"])[0]

    def _vectors(self, texts: Iterable[str]) -> list[list[float]]:
        return [vector.tolist() for vector in self._ready().embed(list(texts))]

    def _ready(self) -> Any:
        """Return the model, loading it at the first call."""
        with self._lock:
            if self._loaded is None:
                self._loaded = self._load()
            return self._loaded

    def _load(self) -> Any:
        from fastembed import TextEmbedding

        _know_multilingual()
        files: dict[str, Any] = {"local_files_only": self._offline or self._path is not None}
        if self._path is not None:
            files["specific_model_path"] = self._path
        try:
            return TextEmbedding(self.model, cache_dir=self._cache_dir, threads=self._threads, **files)
        except Exception as error:  # whatever a download or onnxruntime raises
            kind = type(error).__name__
        where = self._path or self._cache_dir or "the folder of FASTEMBED_CACHE_PATH"
        raise EmbeddingError(
            f"The model {self.model} could not be loaded ({kind}).",
            hint=f"Look whether its files are in {where}, or whether https://huggingface.co can be reached; where it "
            "cannot, copy them there and pass path=.",
        )


def _know_multilingual() -> None:
    """Register the multilingual model with fastembed, which does not include it; once per process."""
    from fastembed import TextEmbedding
    from fastembed.common.model_description import ModelSource, PoolingType

    with _GUARD:
        if any(each["model"] == MULTILINGUAL for each in TextEmbedding.list_supported_models()):
            return
        TextEmbedding.add_custom_model(
            model=MULTILINGUAL,
            pooling=PoolingType.MEAN,
            normalization=True,
            sources=ModelSource(hf=MULTILINGUAL),
            dim=_WIDTH,
            model_file="onnx/model.onnx",
        )
