"""What was passed, checked where it is passed: the wrong type is named, and what to pass instead; never its content."""

from __future__ import annotations

import inspect
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError, SupabaseMemoryError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_KINDS: Final[dict[type, str]] = {str: "a text", bool: "a truth value", int: "a number", float: "a number"}


def type_name(value: object) -> str:
    """What something is, in a few words and without what it says."""
    if value is None:
        return "None"
    if isinstance(value, type):
        return f"the class {value.__name__}"
    if inspect.iscoroutine(value):
        return "a coroutine"
    if inspect.isroutine(value):
        return "a function"
    return _KINDS.get(type(value)) or _article(type(value).__name__)


def wrong_type(
    name: str, expected: str, value: object, hint: str, error: type[SupabaseMemoryError] = ConfigurationError
) -> SupabaseMemoryError:
    """The error for an argument of another type than the one that is wanted.

    Args:
        name: The argument's name.
        expected: What it must be, with its article.
        value: What was passed.
        hint: The next action.
        error: The class.
    """
    if inspect.isawaitable(value):
        hint = f"Await it first. {hint}"
    elif isinstance(value, type):
        hint = f"Pass an object of the class: {value.__name__}(...). {hint}"
    return error(f"{name} must be {expected}, not {type_name(value)}.", hint=hint)


def require_type(name: str, value: object, expected: type, example: str, *, optional: bool = False) -> None:
    """Refuse what is no object of a class.

    Args:
        name: The argument's name.
        value: What was passed.
        expected: The class.
        example: What to pass, as code.
        optional: Whether `None` will do.

    Raises:
        ConfigurationError: It is none.
    """
    if not isinstance(value, expected) and not (optional and value is None):
        raise wrong_type(name, _article(expected.__name__), value, f"Pass {example}.")


def number(
    name: str, value: object, *, minimum: float = 0, above: bool = True, below: float | None = None,
    integer: bool = False, optional: bool = True, example: object = 20,
) -> None:  # fmt: skip
    """Refuse what is no number within bounds; a truth value and a text are none.

    Args:
        name: The argument's name.
        value: What was passed.
        minimum: The bound below.
        above: Whether it must be above that bound, and not only reach it.
        below: What it must be below of.
        integer: Whether it must be a whole number.
        optional: Whether `None` will do.
        example: A number that will do.

    Raises:
        ConfigurationError: It is none.
    """
    if optional and value is None:
        return
    kinds = (int,) if integer else (int, float)
    is_number = isinstance(value, kinds) and not isinstance(value, bool)
    if is_number and (value > minimum if above else value >= minimum) and (below is None or value < below):  # type: ignore[operator]
        return
    wanted = f"a {'whole ' if integer else ''}number {'above' if above else 'from'} {minimum:g}"
    wanted += "" if below is None else f", below {below:g}"
    got = "" if is_number else f", not {type_name(value)}"
    if isinstance(value, timedelta):
        example = f"{example!r}, without timedelta"
    raise ConfigurationError(f"{name} must be {wanted}{got}.", hint=f"Pass {name}={example}, for example.")


def positive_duration(name: str, value: object, *, optional: bool = True, example: str = "timedelta(hours=24)") -> None:
    """Refuse what is no time above zero.

    Args:
        name: The argument's name.
        value: What was passed.
        optional: Whether `None` will do.
        example: What to pass, as code.

    Raises:
        ConfigurationError: It is none.
    """
    if (optional and value is None) or (isinstance(value, timedelta) and value > timedelta()):
        return
    got = "" if isinstance(value, timedelta) else f", not {type_name(value)}"
    raise ConfigurationError(
        f"{name} must be a timedelta above zero{got}.", hint=f"Pass {name}={example}, for example."
    )


def choice(name: str, value: object, choices: Iterable[str], *, optional: bool = False, more: str = "") -> None:
    """Refuse what is none of some words.

    Args:
        name: The argument's name.
        value: What was passed.
        choices: The words.
        optional: Whether `None` will do.
        more: What else could be passed, for the hint.

    Raises:
        ConfigurationError: It is none.
    """
    words = list(choices)
    if (optional and value is None) or (isinstance(value, str) and value in words):
        return
    near = get_close_matches(value, words, 1) if isinstance(value, str) else []
    *rest, last = [*(f'"{word}"' for word in words), *([more] if more else [])]
    hint = f'Did you mean "{near[0]}"? ' if near else ""
    raise ConfigurationError(f"{name} is none of the choices.", hint=f"{hint}Pass {', '.join(rest)} or {last}.")


def boolean(name: str, value: object) -> None:
    """Refuse what is neither `True` nor `False`.

    Raises:
        ConfigurationError: It is neither.
    """
    if not isinstance(value, bool):
        raise wrong_type(name, "True or False", value, f"Pass {name}=True or {name}=False.")


def function(name: str, value: object, example: str, *, optional: bool = True) -> None:
    """Refuse what cannot be called.

    Raises:
        ConfigurationError: It cannot.
    """
    if not callable(value) and not (optional and value is None):
        raise wrong_type(name, "a function", value, f"Pass {example}.")


def refuse_unknown(
    kind: str,
    arguments: Mapping[str, Any],
    names: Iterable[str],
    error: type[SupabaseMemoryError] = InvalidInputError,
) -> None:
    """Refuse named arguments that there are not.

    Args:
        kind: Whose arguments they are.
        arguments: The arguments.
        names: Those that there are.
        error: The class.

    Raises:
        InvalidInputError: There is no such argument, or what `error` says.
    """
    listed = list(names)
    for name in arguments:
        if name not in listed:
            near = get_close_matches(name, listed, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(listed)}."
            raise error(f"{kind} has no argument {name}.", hint=hint)


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"
