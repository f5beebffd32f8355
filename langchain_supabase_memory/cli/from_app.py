"""What an application has made, by its name: for `--app module:name`."""

from __future__ import annotations

import inspect
import os
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any

from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker import Worker


def from_app(name: str) -> Worker | SupabaseMemory:
    """What an application has made.

    Args:
        name: `module:name` of a Worker, a SupabaseMemory, or a function without arguments that gives one.

    Raises:
        ConfigurationError: There is no such thing, or it is something else.
    """
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker import Worker

    found = _imported(name)
    if not isinstance(found, (Worker, SupabaseMemory)) and callable(found):
        needed = _arguments(found)
        if needed:
            raise ConfigurationError(
                f"The function {name} needs arguments ({', '.join(needed)}).",
                hint="Nobody can pass them here: name a function without, or what it gives.",
            )
        found = found()
    if not isinstance(found, (Worker, SupabaseMemory)):
        raise ConfigurationError(
            f"The application gives a {type(found).__name__}.", hint="It has to give a Worker or a SupabaseMemory."
        )
    return found


def _imported(name: str) -> Any:
    """What is called so in a module, which is looked for in the working directory first.

    Raises:
        ConfigurationError: There is no such thing, or it needs what is not there.
    """
    module, _, attribute = name.partition(":")
    if not module or module.startswith(".") or not attribute:
        raise ConfigurationError(
            f"--app {name} is no module:name.", hint="Pass a module and a name in it, such as myapp.memory:worker."
        )
    if sys.path[:1] != [os.getcwd()]:
        sys.path.insert(0, os.getcwd())
    try:
        loaded = import_module(module)
    except SupabaseMemoryError:
        raise
    except ImportError as error:
        if error.name is None:  # the application's own words
            raise
        if isinstance(error, ModuleNotFoundError) and f"{module}.".startswith(f"{error.name}."):
            raise ConfigurationError(
                f"The application's module {module} was not found.",
                hint="Run it in the folder that holds it, or name that folder in PYTHONPATH.",
            ) from None
        lacks = "is not installed" if isinstance(error, ModuleNotFoundError) else "lacks what is imported from it"
        raise ConfigurationError(
            f"The application needs the module {error.name}, which {lacks}.",
            hint="Install what the application needs where this command runs.",
        ) from None
    try:
        return getattr(loaded, attribute)
    except AttributeError:
        raise ConfigurationError(
            f"{attribute} was not found in the application's module {module}.", hint="Pass --app module:name."
        ) from None


def _arguments(function: Callable[..., Any]) -> list[str]:
    """The arguments that a function cannot do without."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # of some that are written in C nobody knows
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in optional]
