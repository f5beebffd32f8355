"""Results within a number of characters: what does not fit is cut with a mark, and what is left out is counted."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory.errors import ConfigurationError
from langchain_supabase_memory.language.messages import fence

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime, tzinfo

CHARACTERS: Final = 4_000
"""The most characters of one result, by default."""

LEAST: Final = 1_000
"""A bound below this would leave no room beside the fence."""

_NOTE: Final = 240
"""What is kept free for the note on what is left out."""

_WORTH_A_CUT: Final = 300


@dataclass(frozen=True)
class Passage:
    """A text of a result.

    Attributes:
        tag: What it is called.
        text: Its words.
        attributes: Its range, its date, who says it. They are short.
        source: Where it is from, without its words, for the artifact of the tool's message.
    """

    tag: str
    text: str = field(repr=False)
    attributes: Mapping[str, str | int] = field(default_factory=dict)
    source: Mapping[str, Any] = field(default_factory=dict)

    def element(self, text: str | None = None) -> str:
        """It as a fenced element, with all its words or those that are shown."""
        return fence.element(self.tag, self.text if text is None else text, **self.attributes)


@dataclass(frozen=True)
class FittedPassages:
    """Passages within a bound.

    Attributes:
        elements: What is shown.
        full_count: How many are shown whole.
        cut: How many characters of the next one are shown; 0 if none is.
    """

    elements: list[str]
    full_count: int
    cut: int = 0

    @property
    def shown_count(self) -> int:
        """How many are shown, one that is cut included."""
        return self.full_count + (self.cut > 0)


def check_limit(characters: int) -> int:
    """The bound of a result, if it is one.

    Raises:
        ConfigurationError: It is not.
    """
    if isinstance(characters, bool) or not isinstance(characters, int) or characters < LEAST:
        raise ConfigurationError(f"characters must be a whole number from {LEAST:,}.", hint=f"{CHARACTERS:,} will do.")
    return characters


def fit_passages(passages: Sequence[Passage], characters: int, *notes: str) -> FittedPassages:
    """As many passages as there is room for, in their order; the first that has no room is cut if that is worth it.

    Args:
        passages: What is to be shown.
        characters: The most characters of the result.
        notes: What is to be said beside them.
    """
    left = characters - _NOTE - len(wrap([], *notes))
    elements: list[str] = []
    for passage in passages:
        element = passage.element()
        if len(element) + 1 <= left:
            elements.append(element)
            left -= len(element) + 1
            continue
        if not elements or left >= _WORTH_A_CUT:
            beginning = _beginning(passage, left)
            if beginning:
                shown = f"{beginning}\n[… {len(passage.text) - len(beginning):,} characters more are left out …]"
                return FittedPassages([*elements, passage.element(shown)], len(elements), len(beginning))
        break
    return FittedPassages(elements, len(elements))


def wrap(elements: Sequence[str], *notes: str) -> str:
    """Elements as one fenced text, with what we say beside them."""
    return fence.fenced([*elements, *(fence.element("note", note) for note in notes if note)])


def note(text: str) -> str:
    """What we say ourselves, of nothing that was said. It has the fence's tag, by which it is known and not indexed."""
    return f"<{fence.TAG}>\n{fence.element('note', text)}\n</{fence.TAG}>"


def shorten(text: str, characters: int) -> str:
    """A text, or its beginning and its end with a mark between them."""
    if len(text) <= characters:
        return text
    mark = f"\n[… {len(text) - characters:,} characters are left out …]\n"
    first = characters * 2 // 3
    return f"{text[:first]}{mark}{text[len(text) - characters + first :]}"


def sequence_range(first: int, last: int) -> str:
    """A range of messages, such as `4` or `4-9`."""
    return str(first) if first == last else f"{first}-{last}"


def date_of(time: datetime, zone: tzinfo) -> str:
    """A time as it is shown: in the zone of the person who asks, and with it."""
    return time.astimezone(zone).isoformat(" ", "minutes")


def name(text: str) -> str:
    """Somebody's name on one line."""
    return " ".join(text.split())[:64]


def _beginning(passage: Passage, room: int) -> str:
    """The longest beginning of a passage that fits with its mark, escaped as it will be."""
    room -= len(passage.element("")) + len(f"\n[… {len(passage.text):,} characters more are left out …]\n") + 1
    shown = bisect_right(range(len(passage.text)), room, key=lambda length: len(fence.escaped(passage.text[:length])))
    return passage.text[: max(shown - 1, 0)]
