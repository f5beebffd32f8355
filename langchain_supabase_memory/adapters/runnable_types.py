"""Detect LangChain's models and embedders without importing their classes.

Those classes take longer to import than all of this package. An instance can only exist if its class's module was
imported; so if the module was never imported, no value is an instance.
"""

from __future__ import annotations

import re
import sys
from typing import TYPE_CHECKING, Any, Final, TypeGuard

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable


_ALTERNATING_CLASSES: Final = frozenset({"ChatMistralAI", "ChatPerplexity"})
_ALTERNATING_NAMES: Final = re.compile(
    r"(?:mi[sx]tral|ministral|magistral|devstral|codestral|gemma|llama-?2|codellama|deepseek-(?:r1|reasoner)|sonar)",
    re.IGNORECASE,
)
"""Models whose chat template or server requires alternating roles: by class, or by a part of the name."""

_NAMES: Final = ("model_name", "model", "model_id", "repo_id", "model_path")
_WRAPPED: Final = ("bound", "runnable", "llm")


def alternates(model: object) -> bool:
    """Return whether a model is known to require alternating roles, by its class or by its name."""
    for each in unwrapped(model):
        if _ALTERNATING_CLASSES & class_names(each):
            return True
        names = (getattr(each, name, None) for name in _NAMES)
        if any(isinstance(name, str) and _ALTERNATING_NAMES.search(name) for name in names):
            return True
    return False


def unwrapped(model: object) -> Iterator[object]:
    """Yield a model, and what it wraps: bindings, retries and fallbacks."""
    for _ in range(_DEEPEST):
        yield model
        model = next((each for name in _WRAPPED if (each := getattr(model, name, None)) is not None), None)
        if model is None:
            return


def class_names(value: object) -> set[str]:
    """Return the names of an object's classes."""
    return {kind.__name__ for kind in type(value).__mro__}


_DEEPEST: Final = 5
"""The maximum number of wrappers around a model that are unwrapped."""


def is_runnable(value: object) -> TypeGuard[Runnable[Any, Any]]:
    """Return whether the value is a `Runnable`."""
    return _is_one(value, "langchain_core.runnables.base", "Runnable")


def is_chat_model(value: object) -> TypeGuard[BaseChatModel]:
    """Return whether the value is a `BaseChatModel`."""
    return _is_one(value, "langchain_core.language_models.chat_models", "BaseChatModel")


def is_embedder(value: object) -> TypeGuard[Embeddings]:
    """Return whether the value is an `Embeddings`."""
    return _is_one(value, "langchain_core.embeddings.embeddings", "Embeddings")


def _is_one(value: object, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)
