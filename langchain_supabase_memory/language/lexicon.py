"""Find, read, check and merge the data files of the languages.

A language is a folder of `languages/`, named by its code. It has a file for each subject that it covers, and requires
none. The tables of a subject are documented where they are read:

- `references.toml`: references to an earlier turn. See `references/lexicon.py`.
- `cues.toml`: names, dates, numbers and questions. See `query_hints/lexicon.py`.
- `phrases.toml`: phrases around facts and tasks. See `extractive/phrases.py`.
- `affixes.toml`: what inflection adds to a root. See `roots.py`.
- `profile.toml`: what people say of themselves. See `extractive/profile/lexicon.py`.
- `signals.toml`: what tells how a conversation goes. See `signals/lexicon.py`.

A file has a `name`, and tables of lists of lowercase words. To add a language, add its folder.
"""

from __future__ import annotations

import re
import tomllib
from functools import cache, wraps
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Protocol, Self, TypeAlias, TypeVar

from langchain_supabase_memory import fork
from langchain_supabase_memory.errors import ConfigurationError

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
    from functools import _lru_cache_wrapper
    from importlib.resources.abc import Traversable

Tables: TypeAlias = "Mapping[str, Collection[str] | re.Pattern[str]]"
"""The tables of a file by name, each with its keys."""

File: TypeAlias = "dict[str, dict[str, list[str]]]"
"""The contents of a file: words by table and key."""

Subject = Literal["references", "cues", "phrases", "affixes", "profile", "signals"]
"""The subject of a file."""

COUNTED: Final = re.compile(r"-?[1-9][0-9]{0,5}")
"""The keys of a table that is keyed by number, from 1 or from -1."""

_CODE: Final = re.compile(r"[A-Za-z0-9-]{1,32}")


class _Joining(Protocol):
    """An entry that `|` merges with another entry for the same words."""

    def __or__(self, other: Self, /) -> Self: ...


K = TypeVar("K", bound=_Joining)
T = TypeVar("T")


def load_once(function: Callable[[], T]) -> _lru_cache_wrapper[T]:
    """Cache a function's result. Unlike with `cache`, concurrent callers in other threads wait for the first call."""
    kept, lock = cache(function), fork.Lock()

    @cache
    @wraps(function)
    def waiting() -> T:
        with lock:
            return kept()

    return waiting


def languages(subject: Subject) -> tuple[str, ...]:
    """Return the package's languages that cover a subject, in order."""
    return tuple(sorted(each.name for each in _root().iterdir() if each.joinpath(f"{subject}.toml").is_file()))


def load(subject: Subject, language: str | Path, tables: Tables) -> File:
    """Load one language's file.

    Args:
        subject: The subject of the file.
        language: The code of a language in the package, or the path of a file.
        tables: The valid tables, each with its valid keys.

    Returns:
        All tables; a table that the file lacks is empty.

    Raises:
        ConfigurationError: The language does not exist, or its file is malformed.
    """
    try:
        data = tomllib.loads(_file(subject, language).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:  # a file that is missing, not UTF-8 or not TOML
        raise ConfigurationError(
            f"The language {str(language)!r} could not be read: {error}.",
            hint=f"Pass one of {', '.join(languages(subject))}, or a pathlib.Path of a language file.",
        ) from error
    data.pop("name", None)
    wrong = [name for name, table in data.items() if name not in tables or not isinstance(table, dict)]
    wrong = wrong or [f"{name}.{key}" for name, table in data.items() for key in _wrong(table, tables[name])]
    if wrong:
        raise ConfigurationError(
            f"The language {str(language)!r} has unknown or malformed tables: {', '.join(wrong)}.",
            hint=f"langchain_supabase_memory/language/languages/en/{subject}.toml is a valid example.",
        )
    return {name: data.get(name, {}) for name in tables}


def table_words(table: Mapping[str, list[str]]) -> Iterator[tuple[str, str]]:
    """Yield every word of a table, with its key."""
    return ((key, text) for key, texts in table.items() for text in texts)


def merge_entries(entries: Iterable[tuple[tuple[str, ...], K]]) -> dict[tuple[str, ...], K]:
    """Merge the entries of all lists, by the words of each entry."""
    known: dict[tuple[str, ...], K] = {}
    for words, entry in entries:
        known[words] = known[words] | entry if words in known else entry
    return known


def single_word(entries: Mapping[tuple[str, ...], K]) -> dict[str, K]:
    """Return the entries of single words."""
    return {words[0]: entry for words, entry in entries.items() if len(words) == 1}


def multi_word(entries: Mapping[tuple[str, ...], K]) -> dict[tuple[str, str], list[tuple[tuple[str, ...], K]]]:
    """Return the entries of longer phrases: by the first two words, the rest of each phrase, the longest first."""
    made: dict[tuple[str, str], list[tuple[tuple[str, ...], K]]] = {}
    for words, entry in sorted(entries.items(), key=lambda item: -len(item[0])):
        if len(words) > 1:
            made.setdefault((words[0], words[1]), []).append((words[2:], entry))
    return made


def _root() -> Traversable:
    return files(__package__).joinpath("languages")


def _file(subject: Subject, language: str | Path) -> Path | Traversable:
    """Return the path of a language's file."""
    if isinstance(language, Path):
        return language
    if not _CODE.fullmatch(language):
        raise ValueError("a language code must only contain letters, digits and hyphens")
    return _root().joinpath(language, f"{subject}.toml")


def _wrong(table: Mapping[str, object], keys: Collection[str] | re.Pattern[str]) -> list[str]:
    """Return the keys of a table that are unknown, or whose value is not a list of words."""
    read = keys.fullmatch if isinstance(keys, re.Pattern) else keys.__contains__
    return [key for key, value in table.items() if not (read(key) and _are_words(value))]


def _are_words(value: object) -> bool:
    """Return whether a value is a list of words."""
    return isinstance(value, list) and all(isinstance(each, str) and any(map(str.isalnum, each)) for each in value)
