"""Load the models set by options and the environment; without a key, models that need none."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

    from langchain_supabase_memory.adapters.summarizer import Summarizer

MODEL: Final = "gpt-5.5"
"""The default OpenAI chat model."""

EMBEDDINGS: Final = "text-embedding-3-small"
"""The default OpenAI embedding model."""

_KEY: Final = "OPENAI_API_KEY"


def has_key() -> bool:
    """Return whether the environment has an OpenAI key."""
    return bool(os.environ.get(_KEY))


def summarizer(name: str | None) -> Summarizer:
    """Load the model that writes summaries and boards.

    Args:
        name: An OpenAI model; by default `MODEL`, or an extractive summarizer without a key.

    Raises:
        ConfigurationError: A model is given without a key.
        MissingDependencyError: The extra `openai` is not installed.
    """
    if name is None and not has_key():
        from langchain_supabase_memory.language.extractive import ExtractiveSummarizer

        return ExtractiveSummarizer()
    return chat_model(name or MODEL)


def chat_model(name: str) -> BaseChatModel:
    """Load an OpenAI chat model.

    Raises:
        ConfigurationError: There is no key.
        MissingDependencyError: The extra `openai` is not installed.
    """
    model: BaseChatModel = _openai_model("ChatOpenAI", "An OpenAI model", name)
    return model


def embedder(name: str | None) -> Embeddings | None:
    """Load an OpenAI embedding model; `None` if no name is given. Errors as for `chat_model`."""
    return _openai_model("OpenAIEmbeddings", "An OpenAI embedder", name) if name else None


def agent_models(name: str) -> tuple[BaseChatModel, Summarizer, Embeddings | None]:
    """Load an agent's chat model, its summarizer and its embedder.

    Args:
        name: An OpenAI chat model. Without a key, offline stand-ins replace the models, and there is no embedder.

    Raises:
        MissingDependencyError: The extra `openai` is not installed.
    """
    if has_key():
        chat = chat_model(name)
        return chat, chat, embedder(EMBEDDINGS)
    from langchain_supabase_memory.testing.quoting_model import OfflineQuotingModel

    return OfflineQuotingModel(), summarizer(None), None


def _openai_model(kind: str, label: str, name: str) -> Any:
    try:
        import langchain_openai
    except ImportError:
        raise MissingDependencyError(label, "openai") from None
    if not has_key():
        raise ConfigurationError(
            f"{label} needs {_KEY}, which the environment does not have.", hint=f"Set {_KEY}, or leave the model out."
        )
    return getattr(langchain_openai, kind)(model=name)
