"""Load the object of `--app module:name`."""

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


def load_app(name: str) -> Worker | SupabaseMemory:
    """Load an application's worker or memory.

    Args:
        name: `module:name` of a Worker, a SupabaseMemory, or a function without arguments that returns one.

    Raises:
        ConfigurationError: There is no such object, or it is something else.
    """
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.worker import Worker

    value = _import_object(name)
    if not isinstance(value, (Worker, SupabaseMemory)) and callable(value):
        if missing := _required_arguments(value):
            raise ConfigurationError(
                f"The function {name} needs arguments ({', '.join(missing)}).",
                hint="Name a function without arguments, or the object that it returns.",
            )
        value = value()
    if not isinstance(value, (Worker, SupabaseMemory)):
        raise ConfigurationError(
            f"The application gives a {type(value).__name__}.", hint="It has to give a Worker or a SupabaseMemory."
        )
    return value


def _import_object(name: str) -> Any:
    """Import an object. The working directory comes first in the import path.

    Raises:
        ConfigurationError: There is no such object, or its module cannot be imported.
    """
    module_name, _, attribute = name.partition(":")
    if not module_name or module_name.startswith(".") or not attribute:
        raise ConfigurationError(
            f"--app {name} is not a module:name.", hint="Pass a module and a name in it, such as myapp.memory:worker."
        )
    if sys.path[:1] != [os.getcwd()]:
        sys.path.insert(0, os.getcwd())
    try:
        module = import_module(module_name)
    except SupabaseMemoryError:
        raise
    except ImportError as error:
        if error.name is None:  # the application raised it
            raise
        if isinstance(error, ModuleNotFoundError) and f"{module_name}.".startswith(f"{error.name}."):
            raise ConfigurationError(
                f"The application's module {module_name} was not found.",
                hint="Run it in the folder that holds it, or name that folder in PYTHONPATH.",
            ) from None
        reason = "is not installed" if isinstance(error, ModuleNotFoundError) else "lacks what is imported from it"
        raise ConfigurationError(
            f"The application needs the module {error.name}, which {reason}.",
            hint="Install what the application needs where this command runs.",
        ) from None
    try:
        return getattr(module, attribute)
    except AttributeError:
        raise ConfigurationError(
            f"{attribute} was not found in the application's module {module_name}.", hint="Pass --app module:name."
        ) from None


def _required_arguments(function: Callable[..., Any]) -> list[str]:
    """Return a function's arguments without a default."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except ValueError:  # some functions in C have no signature
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [each.name for each in parameters if each.default is each.empty and each.kind not in optional]
