"""Embedder inside Supabase: the Edge Function `memory-embed`, which runs the Edge runtime's own model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import httpx
from langchain_core.embeddings import Embeddings

from langchain_supabase_memory import documents, fork
from langchain_supabase_memory.checks import number
from langchain_supabase_memory.deadline import in_thread
from langchain_supabase_memory.errors import ConfigurationError, EmbeddingError
from langchain_supabase_memory.unpicklable import Unpicklable

if TYPE_CHECKING:
    import ssl
    from collections.abc import Iterator, Sequence

FUNCTION: Final = "memory-embed"
"""The name of the function and of its folder in `edge_functions`."""

MODEL: Final = "gte-small"
"""The model of Supabase's Edge runtime: English, 384 dimensions, reads the first 512 tokens of a text."""

WIDTH: Final = 384
BATCH: Final = 16

_KEY_HINT: Final = "Pass a key or a token of a signed-in user that the function accepts; see docs/embedders.md."
_SAID: Final = {
    401: ("The Edge Function refused the key.", _KEY_HINT),
    403: ("The Edge Function refused the key.", _KEY_HINT),
    404: ("There is no such Edge Function.", f"Deploy it: supabase functions deploy {FUNCTION}."),
    413: ("The Edge Function was passed too much at once.", "Pass a smaller batch=."),
    429: ("The Edge Function was called too often.", "Pass a larger batch=, or call less often."),
    # Supabase's status for a function that exceeds its time or memory limit.
    546: ("The Edge Function exceeded its time or memory limit.", "Pass a smaller batch=."),
}


class EdgeEmbeddings(Unpicklable, Embeddings):
    """Embeds with the model of Supabase's Edge runtime, through the Edge Function `memory-embed`.

    It needs no provider key and no download, only `supabase functions deploy memory-embed` with the function's file
    from this package's repository. The model reads English.

    Args:
        url: The project's url, as for `SupabaseMemory.from_url`.
        key: The project's key, or a user's access token. The function only accepts servers and signed-in users.
        function: The name under which the function was deployed.
        batch: The maximum number of texts in one request.
        timeout_seconds: How long to wait for one request, in seconds.

    Raises:
        ConfigurationError: The url is not valid, the key is empty, or a number is not positive.
    """

    model: Final = MODEL

    def __init__(
        self, url: str, key: str, *, function: str = FUNCTION, batch: int = BATCH, timeout_seconds: float = 30.0
    ) -> None:
        number("batch", batch, integer=True, optional=False, example=BATCH)
        number("timeout_seconds", timeout_seconds, optional=False, example=30)
        if not isinstance(url, str) or not url.startswith(("https://", "http://")):
            raise ConfigurationError("That is not the url of a project.", hint='Pass "https://<project>.supabase.co".')
        for name, value in (("key", key), ("function", function)):
            if not isinstance(value, str) or not value.strip() or not value.isascii() or not value.isprintable():
                raise ConfigurationError(f"{name} must be a text of ASCII letters and signs.", hint=f"Pass {name}=.")
        self._address = f"{url.rstrip('/')}/functions/v1/{function}"
        self._headers = {
            "Authorization": f"Bearer {key}",
            "apikey": key,
            "Content-Type": "application/json",
            "Accept": "application/json",
        }
        self._batch = batch
        self._timeout_seconds = timeout_seconds
        self._trusted: ssl.SSLContext | None = None
        self._lock = fork.Lock()

    def __repr__(self) -> str:
        """Return the address, without the key."""
        return f"EdgeEmbeddings({self._address!r})"

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return a vector for each text.

        Raises:
            EmbeddingError: The function could not be reached, refused, or returned something else.
        """
        vectors: list[list[float]] = []
        with httpx.Client(headers=self._headers, timeout=self._timeout_seconds, verify=self._certificates()) as client:
            for batch in self._batches(texts):
                try:
                    answer = client.post(self._address, content=_body(batch))
                except httpx.HTTPError as error:
                    failure = _unreachable(error)
                else:
                    vectors += _vectors(answer, len(batch))
                    continue
                raise failure
        return vectors

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """The async twin of `embed_documents`, over an async client."""
        vectors: list[list[float]] = []
        trusted = await in_thread(self._certificates)
        async with httpx.AsyncClient(headers=self._headers, timeout=self._timeout_seconds, verify=trusted) as client:
            for batch in self._batches(texts):
                try:
                    answer = await client.post(self._address, content=_body(batch))
                except httpx.HTTPError as error:
                    failure = _unreachable(error)
                else:
                    vectors += _vectors(answer, len(batch))
                    continue
                raise failure
        return vectors

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of a query, which this model embeds like any text.

        Raises:
            EmbeddingError: As for `embed_documents`.
        """
        return self.embed_documents([text])[0]

    async def aembed_query(self, text: str) -> list[float]:
        """The async twin of `embed_query`."""
        return (await self.aembed_documents([text]))[0]

    def _certificates(self) -> ssl.SSLContext:
        """Return the trusted certificates, read from files once."""
        with self._lock:
            if self._trusted is None:
                self._trusted = httpx.create_ssl_context()
            return self._trusted

    def _batches(self, texts: Sequence[str]) -> Iterator[list[str]]:
        for first in range(0, len(texts), self._batch):
            yield list(texts[first : first + self._batch])


def _body(texts: list[str]) -> bytes:
    return documents.dumps({"input": texts})


def _vectors(answer: httpx.Response, count: int) -> list[list[float]]:
    """Return the vectors in a response.

    Raises:
        EmbeddingError: The response has no vectors, or not those requested. Its text is not shown.
    """
    code = str(answer.status_code)
    if answer.status_code != httpx.codes.OK:
        said, hint = _SAID.get(
            answer.status_code,
            ("The Edge Function failed.", f"Look into its log: supabase functions logs {FUNCTION}; then try again."),
        )
        raise EmbeddingError(said, code=code, hint=hint)
    document = documents.mapping(answer.content)
    if document is None or document.get("model") != MODEL:
        raise EmbeddingError(
            "What answered is not the Edge Function memory-embed.", hint="Check the url and the function's name."
        )
    vectors = document.get("embeddings")
    if not isinstance(vectors, list) or len(vectors) != count or not all(map(_is_vector, vectors)):
        raise EmbeddingError(
            f"The Edge Function did not give {count} vectors of {WIDTH} numbers.",
            hint=f"Deploy this release's function: supabase functions deploy {FUNCTION}.",
        )
    return vectors


def _is_vector(value: object) -> bool:
    return isinstance(value, list) and len(value) == WIDTH and all(type(each) in (int, float) for each in value)


def _unreachable(error: httpx.HTTPError) -> EmbeddingError:
    return EmbeddingError(
        f"The Edge Function could not be reached ({type(error).__name__}).",
        hint="Check the project's url and the network, or raise timeout_seconds; then try again.",
    )
