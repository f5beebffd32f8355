"""What LangChain calls a model or an embedder, told without importing its classes.

They take longer to import than all of this package. Whoever holds an instance of a class has imported it; so where its
module was never imported, nothing is one.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, TypeGuard

if TYPE_CHECKING:
    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from langchain_core.runnables import Runnable


def is_runnable(value: object) -> TypeGuard[Runnable[Any, Any]]:
    """Whether it is a `Runnable`."""
    return _is_one(value, "langchain_core.runnables.base", "Runnable")


def is_chat_model(value: object) -> TypeGuard[BaseChatModel]:
    """Whether it is a `BaseChatModel`."""
    return _is_one(value, "langchain_core.language_models.chat_models", "BaseChatModel")


def is_embedder(value: object) -> TypeGuard[Embeddings]:
    """Whether it is an `Embeddings`."""
    return _is_one(value, "langchain_core.embeddings.embeddings", "Embeddings")


def _is_one(value: object, module: str, name: str) -> bool:
    kind = getattr(sys.modules.get(module), name, None)
    return kind is not None and isinstance(value, kind)
