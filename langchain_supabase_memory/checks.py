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


def kind(given: object) -> str:
    """What something is, in a few words and without what it says."""
    if given is None:
        return "None"
    if isinstance(given, type):
        return f"the class {given.__name__}"
    if inspect.iscoroutine(given):
        return "a coroutine"
    if inspect.isroutine(given):
        return "a function"
    return _KINDS.get(type(given)) or _article(type(given).__name__)


def wrong(
    name: str, wanted: str, given: object, hint: str, error: type[SupabaseMemoryError] = ConfigurationError
) -> SupabaseMemoryError:
    """The error for an argument of another type than the one that is wanted.

    Args:
        name: The argument's name.
        wanted: What it must be, with its article.
        given: What was passed.
        hint: The next action.
        error: The class.
    """
    if inspect.isawaitable(given):
        hint = f"Await it first. {hint}"
    elif isinstance(given, type):
        hint = f"Pass an object of the class: {given.__name__}(...). {hint}"
    return error(f"{name} must be {wanted}, not {kind(given)}.", hint=hint)


def of_type(name: str, given: object, wanted: type, example: str, *, optional: bool = False) -> None:
    """Refuse what is no object of a class.

    Args:
        name: The argument's name.
        given: What was passed.
        wanted: The class.
        example: What to pass, as code.
        optional: Whether `None` will do.

    Raises:
        ConfigurationError: It is none.
    """
    if not isinstance(given, wanted) and not (optional and given is None):
        raise wrong(name, _article(wanted.__name__), given, f"Pass {example}.")


def number(
    name: str, given: object, *, least: float = 0, above: bool = True, below: float | None = None, whole: bool = False,
    optional: bool = True, example: object = 20,
) -> None:  # fmt: skip
    """Refuse what is no number within bounds; a truth value and a text are none.

    Args:
        name: The argument's name.
        given: What was passed.
        least: The bound below.
        above: Whether it must be above that bound, and not only reach it.
        below: What it must be below of.
        whole: Whether it must be a whole number.
        optional: Whether `None` will do.
        example: A number that will do.

    Raises:
        ConfigurationError: It is none.
    """
    if optional and given is None:
        return
    kinds = (int,) if whole else (int, float)
    is_number = isinstance(given, kinds) and not isinstance(given, bool)
    if is_number and (given > least if above else given >= least) and (below is None or given < below):  # type: ignore[operator]
        return
    wanted = f"a {'whole ' if whole else ''}number {'above' if above else 'from'} {least:g}"
    wanted += "" if below is None else f", below {below:g}"
    got = "" if is_number else f", not {kind(given)}"
    if isinstance(given, timedelta):
        example = f"{example!r}, without timedelta"
    raise ConfigurationError(f"{name} must be {wanted}{got}.", hint=f"Pass {name}={example}, for example.")


def lasting(name: str, given: object, *, optional: bool = True, example: str = "timedelta(hours=24)") -> None:
    """Refuse what is no time above zero.

    Args:
        name: The argument's name.
        given: What was passed.
        optional: Whether `None` will do.
        example: What to pass, as code.

    Raises:
        ConfigurationError: It is none.
    """
    if (optional and given is None) or (isinstance(given, timedelta) and given > timedelta()):
        return
    got = "" if isinstance(given, timedelta) else f", not {kind(given)}"
    raise ConfigurationError(
        f"{name} must be a timedelta above zero{got}.", hint=f"Pass {name}={example}, for example."
    )


def choice(name: str, given: object, choices: Iterable[str], *, optional: bool = False, more: str = "") -> None:
    """Refuse what is none of some words.

    Args:
        name: The argument's name.
        given: What was passed.
        choices: The words.
        optional: Whether `None` will do.
        more: What else could be passed, for the hint.

    Raises:
        ConfigurationError: It is none.
    """
    words = list(choices)
    if (optional and given is None) or (isinstance(given, str) and given in words):
        return
    near = get_close_matches(given, words, 1) if isinstance(given, str) else []
    *rest, last = [*(f'"{word}"' for word in words), *([more] if more else [])]
    hint = f'Did you mean "{near[0]}"? ' if near else ""
    raise ConfigurationError(f"{name} is none of the choices.", hint=f"{hint}Pass {', '.join(rest)} or {last}.")


def truth(name: str, given: object) -> None:
    """Refuse what is neither `True` nor `False`.

    Raises:
        ConfigurationError: It is neither.
    """
    if not isinstance(given, bool):
        raise wrong(name, "True or False", given, f"Pass {name}=True or {name}=False.")


def function(name: str, given: object, example: str, *, optional: bool = True) -> None:
    """Refuse what cannot be called.

    Raises:
        ConfigurationError: It cannot.
    """
    if not callable(given) and not (optional and given is None):
        raise wrong(name, "a function", given, f"Pass {example}.")


def known(
    what: str,
    given: Mapping[str, Any],
    names: Iterable[str],
    error: type[SupabaseMemoryError] = InvalidInputError,
) -> None:
    """Refuse named arguments that there are not.

    Args:
        what: Whose arguments they are.
        given: The arguments.
        names: Those that there are.
        error: The class.

    Raises:
        InvalidInputError: There is no such argument, or what `error` says.
    """
    listed = list(names)
    for name in given:
        if name not in listed:
            near = get_close_matches(name, listed, 1)
            hint = f"Did you mean {near[0]}?" if near else f"There are {', '.join(listed)}."
            raise error(f"{what} has no argument {name}.", hint=hint)


def _article(name: str) -> str:
    return f"{'an' if name[:1] in 'AEIOaeio' else 'a'} {name}"
