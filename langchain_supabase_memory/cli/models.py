"""The models that options and the environment name; without a key, what needs none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from langchain_supabase_memory.adapters.summarizer import Summarizer

MODEL: Final = "gpt-5.5"
"""The chat model of OpenAI where none is named."""

EMBEDDINGS: Final = "text-embedding-3-small"
"""The embedder that goes with it."""

_KEY: Final = "OPENAI_API_KEY"


def has_key() -> bool:
    """Whether the environment has a key of OpenAI."""
    return bool(os.environ.get(_KEY))


def writer(name: str | None) -> Summarizer:
    """The model that writes.

    Args:
        name: A model of OpenAI; by default `MODEL` where there is a key, and else what selects quotes.

    Raises:
        ConfigurationError: A model is named, and there is no key.
        MissingDependencyError: The extra `openai` is not installed.
    """
    if name is None and not has_key():
        from langchain_supabase_memory.language.extractive import ExtractiveSummarizer

        return ExtractiveSummarizer()
    return chat_model(name or MODEL)


def chat_model(name: str) -> BaseChatModel:
    """A chat model of OpenAI.

    Raises:
        ConfigurationError: There is no key.
        MissingDependencyError: The extra `openai` is not installed.
    """
    made: BaseChatModel = _of_openai("ChatOpenAI", "A model of OpenAI", name)
    return made


def embedder(name: str) -> Embeddings:
    """An embedder of OpenAI; errors as for `chat_model`."""
    made: Embeddings = _of_openai("OpenAIEmbeddings", "An embedder of OpenAI", name)
    return made


def of_an_agent(name: str) -> tuple[BaseChatModel, Summarizer, Embeddings | None]:
    """An agent's chat model, what writes its summaries, and its embedder.

    Args:
        name: A chat model of OpenAI, where there is a key; without one all are stand-ins, and there is no embedder.

    Raises:
        MissingDependencyError: The extra `openai` is not installed.
    """
    if has_key():
        chat = chat_model(name)
        return chat, chat, embedder(EMBEDDINGS)
    from langchain_supabase_memory.cli.demo.model import OfflineQuotingModel

    return OfflineQuotingModel(), writer(None), None


def _of_openai(kind: str, what: str, name: str) -> Any:
    try:
        import langchain_openai
    except ImportError:
        raise MissingDependencyError(what, "openai") from None
    if not has_key():
        raise ConfigurationError(
            f"{what} needs {_KEY}, which the environment does not have.",
            hint=f"Set {_KEY}, or leave the model out.",
        )
    return getattr(langchain_openai, kind)(model=name)
