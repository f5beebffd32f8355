"""What is not words, or not for a model to read again: found, measured and named, never rendered."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS: Final = frozenset({"type", "id", "index"})
"""Keys under which a block says what it is and where it stands."""

_KILO: Final = 1000
_LONGEST: Final = 200
_SHORTEST_BASE64: Final = 128
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-\r\n]+={0,2}\s*")
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+/-]*)(?:;[^,;]{1,100}){0,5},", re.ASCII | re.IGNORECASE)
_SEALED: Final = re.compile("encrypted|signature", re.IGNORECASE)
_NO_CONTAINERS: Final = (str, bytes, bytearray, int, float, type(None))


def human(size: int) -> str:
    """A size in bytes for a reader: `80 bytes`, `13 KB`, `2.5 MB`."""
    if size < _KILO:
        return f"{size} bytes"
    if size < _KILO * _KILO:
        return f"{size / _KILO:.0f} KB"
    return f"{size / _KILO / _KILO:.1f} MB"


def one_line(text: str) -> str:
    """A name, an id or an address on one line, cut where it is very long."""
    line = " ".join(text[: 4 * _LONGEST].split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def is_sealed(key: Any, value: Any) -> bool:
    """Whether a value is a signature or encrypted, and so for nobody but the provider: it is no words either."""
    if not isinstance(key, str) or not isinstance(value, (str, bytes)) or _SEALED.search(key) is None:
        return False
    return isinstance(value, bytes) or " " not in value.strip()


def seal(key: str) -> str:
    """What a sealed value is called."""
    return "signature" if "signature" in key.lower() else "encrypted content"


def data_url(text: str) -> str | None:
    """The media type of a data URL, which may be empty; `None` if the text is none."""
    found = _DATA_URL.match(text) if text[:5].lower() == "data:" else None
    return None if found is None else found["type"]


def is_base64(text: str) -> bool:
    """Whether a text within JSON is so long and so plain that it can only be bytes in base64."""
    return len(text) >= _SHORTEST_BASE64 and _BASE64.fullmatch(text) is not None


def bytes_in(data: str | bytes) -> int:
    """How many bytes base64, a data URL or bytes hold."""
    if not isinstance(data, str):
        return len(data)
    encoded = data.partition(",")[2] if data_url(data) is not None else data
    return len(encoded.rstrip("=\r\n ")) * 3 // 4


def leaves(value: Any) -> Iterator[tuple[str, str | bytes]]:
    """The texts and bytes in a value, however deep, each with the key that it stands under; ids are left out.

    It is a loop and no recursion, and looks at a container once, so nothing is too deep or goes round.
    """
    seen: set[int] = set()
    waiting: list[tuple[str, Any]] = [("", value)]
    while waiting:
        key, item = waiting.pop()
        if isinstance(item, (str, bytes, bytearray)):
            yield key, item if isinstance(item, str) else bytes(item)
        elif isinstance(item, (dict, list, tuple)) and id(item) not in seen:
            seen.add(id(item))
            if isinstance(item, dict):
                inner = [(str(name) if isinstance(name, str) else "", each) for name, each in item.items()]
                waiting.extend(reversed([pair for pair in inner if pair[0] not in IDS]))
            else:
                waiting.extend((key, each) for each in reversed(item))


def about_size(value: Any) -> int:
    """About how many bytes a value of any kind takes as JSON; what is no JSON weighs nothing."""
    size = 0
    seen: set[int] = set()
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if type(item) in _NO_CONTAINERS:
            size += len(item) if isinstance(item, (str, bytes, bytearray)) else 4
        elif type(item) in (dict, list, tuple, set, frozenset) and id(item) not in seen:
            seen.add(id(item))
            size += 2 * len(item)
            waiting.extend([*item, *item.values()] if isinstance(item, dict) else item)
    return size


@dataclass
class Names:
    """What is named of a message.

    Attributes:
        media: Images, sounds and files, each with what is known of it.
        sizes: The bytes of everything else, by what it is.
    """

    media: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, size: int) -> None:
        """Note something that is named with others of its kind."""
        self.sizes[name] = self.sizes.get(name, 0) + size

    def __str__(self) -> str:
        """Everything in one bracket; empty if there is nothing."""
        named = [*self.media, *(f"{name}, {human(size)}" for name, size in self.sizes.items())]
        return f"[{'; '.join(named)}]" if named else ""
