"""Find data that is not text, or that a model should not read again; name it with its size instead of rendering it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

IDS: Final = frozenset({"type", "id", "index"})
"""Keys for a block's type, id and position."""

_KILO: Final = 1000
_LONGEST: Final = 200
_SHORTEST_BASE64: Final = 128
_BASE64: Final = re.compile(r"[A-Za-z0-9+/_\-\r\n]+={0,2}\s*")
_DATA_URL: Final = re.compile(r"data:(?P<type>[\w.+/-]*)(?:;[^,;]{1,100}){0,5},", re.ASCII | re.IGNORECASE)
_SEALED: Final = re.compile("encrypted|signature", re.IGNORECASE)

LONGEST: Final = 1_000_000
"""The maximum characters of one message that rules, a model or an embedder read: its beginning and its end."""

_MIN_LENGTH: Final = 256
"""Shorter data stays in place."""

# Each pattern matches a whole run and the code decides on the match, so no run is scanned twice. Where a pattern looks
# behind itself first, a part of it that begins with a character says sooner that a text has none.
_IN_TEXT: Final = re.compile(
    r"data:(?P<type>[\w.+/-]{0,100})(?:;[^,;\s]{1,100}){0,5},(?P<held>[\w+/=%.~-]{64,})", re.ASCII | re.IGNORECASE
)
_ENCODED: Final = re.compile(
    r"(?<![\w+/%-])[\w+/%-]{40,}+={0,2}(?:(?:\s|\\[nr]){1,4}[\w+/%-]{8,}+={0,2}(?![\w+/%-]))*+", re.ASCII
)
_ENCODED_LINE: Final = re.compile(r"[\w+/%-]+={0,2}", re.ASCII)
_ENCODED_PART: Final = re.compile(rf"{_ENCODED_LINE.pattern}|(?:\s|\\[nr])+", re.ASCII)
_BYTES: Final = re.compile(r"(?<![0-9A-Fa-f])(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ ,:;|\n\r\t]{0,3}){16,}+", re.ASCII)
_IS_BYTES: Final = re.compile(
    r"[0-9A-Fa-f][0-9A-Fa-f][ ,:;|\n\r\t]{0,3}(?:(?:0x|\\x)?[0-9A-Fa-f]{2}[ ,:;|\n\r\t]{0,3}){7}", re.ASCII
)
_DUMP: Final = re.compile(
    r"(?:^[ \t]*(?:[0-9A-Fa-f]{4,16}[:hH]?[ \t]+)?(?:[0-9A-Fa-f]{2,8}[ \t|-]{1,3}){4,}+[^\n]{0,120}(?:\n|\Z)){2,}+",
    re.ASCII | re.MULTILINE,
)
_HEX_PART: Final = re.compile(r"[0-9A-Fa-f]{2,8}", re.ASCII)
_HEX_LETTER: Final = re.compile(r"[A-Fa-f]", re.ASCII)
_NUMBERS: Final = re.compile(
    r"(?<![\d.])(?:-?\d{1,3}\.\d{4,20}(?:e[-+]?\d{1,3})?[,;\s]{1,4}){8,}+(?:-?\d{1,3}\.\d{4,20})?",
    re.ASCII | re.IGNORECASE,
)
_IS_NUMBER: Final = re.compile(r"\d\.\d{4}", re.ASCII)
_CONTROL: Final = "\x00-\x08\x0e-\x1a\x1c-\x1f\x7f-\x9f\ufffd"  # except the escape character that colors a log
_BINARY: Final = re.compile(rf"[{_CONTROL}](?:[^{_CONTROL}]{{0,24}}[{_CONTROL}]){{8,}}+")
_IS_BINARY: Final = re.compile(f"[{_CONTROL}]")
_CODE_LINE: Final = re.compile(r"^[^\n]{1000,}+", re.MULTILINE)
_UNBROKEN: Final = re.compile(r"(?<![!-~])[!-~]{600,}+")
_CODE_MARKS: Final = re.compile(r"[{}();=]")
_SPARSE: Final = 25  # characters of minified code per space
_MARKED: Final = 20  # and per code mark
_OPEN: Final = 200  # characters of JSON per key
_LISTED: Final = 12  # characters of a list per comma
_TAGGED: Final = 100  # characters of markup per tag
_VARIED: Final = 8  # minimum number of distinct characters in data
_HEX_SHARE: Final = 0.2  # share of a dump's parts that contain a letter: a table of numbers has none
_NAME: Final = re.compile(r"\[data: [^\[\]\n]{1,120}\]|\[… [^\[\]\n]{1,40} left out …\]")
_DIGITS: Final = frozenset("0123456789 \r\n\\=")
_HEX: Final = _DIGITS | frozenset("abcdefABCDEF")
_UPPER: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_LOWER: Final = frozenset("abcdefghijklmnopqrstuvwxyz")
_PLUS: Final = frozenset("+/")
_MINUS: Final = frozenset("-_")  # their replacements in URL-safe base64
_NO_CONTAINERS: Final = (str, bytes, bytearray, int, float, type(None))


def readable_size(size: int) -> str:
    """Format a size in bytes: `80 bytes`, `13 KB`, `2.5 MB`."""
    if size < _KILO:
        return f"{size} bytes"
    if size < _KILO * _KILO:
        return f"{size / _KILO:.0f} KB"
    return f"{size / _KILO / _KILO:.1f} MB"


def one_line(text: str) -> str:
    """Return a name, an id or an address on one line, cut if it is very long."""
    line = " ".join(text[: 4 * _LONGEST].split())
    return line if len(line) <= _LONGEST else f"{line[:_LONGEST]}…"


def is_encrypted(key: Any, value: Any) -> bool:
    """Return whether a value is a signature or encrypted, so that only the provider can use it."""
    if not isinstance(key, str) or not isinstance(value, (str, bytes)) or _SEALED.search(key) is None:
        return False
    return isinstance(value, bytes) or " " not in value.strip()


def shorten_encrypted(key: str) -> str:
    """Return the display name of an encrypted value."""
    return "signature" if "signature" in key.lower() else "encrypted content"


def data_url(text: str) -> str | None:
    """Return the media type of a data URL, possibly empty; `None` if the text is not one."""
    found = _DATA_URL.match(text) if text[:5].lower() == "data:" else None
    return None if found is None else found["type"]


def is_base64(text: str) -> bool:
    """Return whether a text within JSON is so long and plain that it must be base64."""
    return len(text) >= _SHORTEST_BASE64 and _BASE64.fullmatch(text) is not None


def without_data(text: str) -> str:
    """Replace data in a text with names such as `[data: 640 KB of base64]`.

    Data is a data URL, base64, hexadecimal, a byte dump, a vector, a binary file, or minified code. Runs of fewer than
    256 characters stay, and so do JSON, markup, lists and repetitions of a few characters.

    Args:
        text: Any text. The time is linear in its length.

    Returns:
        The text with the names; the same object if it contains no data.
    """
    if len(text) < _MIN_LENGTH:
        return text
    made = _IN_TEXT.sub(_named_url, text)
    made = _DUMP.sub(_named_bytes, made)
    made = _ENCODED.sub(_named_encoded, made)
    if _IS_BYTES.search(made) is not None:
        made = _BYTES.sub(_named_bytes, made)
    if _IS_NUMBER.search(made) is not None:
        made = _NUMBERS.sub(_named_numbers, made)
    if _IS_BINARY.search(made) is not None:
        made = _BINARY.sub(_named_binary, made)
    if len(made) >= _MIN_LENGTH:
        made = _CODE_LINE.sub(_named_code, made)
        made = _UNBROKEN.sub(_named_unbroken, made)
    return text if made == text else made


def shorten_middle(text: str, max_characters: int = LONGEST) -> str:
    """Return the beginning and end of a text that is too long, with the size of the omitted middle between them.

    Args:
        text: Any text.
        max_characters: The maximum number of characters in the result.
    """
    if len(text) <= max_characters:
        return text
    mark = f"\n[… {readable_size(len(text) - max_characters)} left out …]\n"
    end = max_characters // 3
    return f"{text[: max(max_characters - end - len(mark), 0)]}{mark}{text[len(text) - end :]}"


def prose(text: str) -> str:
    """Return a text as rules, a model or an embedder read it: `without_data`, then `shorten_middle`."""
    return shorten_middle(without_data(text))


def words_only(text: str) -> str:
    """Return `prose` with a line break in place of each name, for rules that quote."""
    return _NAME.sub("\n", prose(text))


def _data(size: int, kind: str) -> str:
    """Return the placeholder for data."""
    return f"[data: {readable_size(size)} of {kind}]"


def _named_url(match: re.Match[str]) -> str:
    if len(match[0]) < _MIN_LENGTH:
        return match[0]
    return _data(bytes_in(match[0]), match["type"] or "text")


def _named_encoded(match: re.Match[str]) -> str:
    """Treat lines of one length, except the last, as one encoded text; examine other lines separately."""
    made: list[str] = []
    held: list[str] = []  # lines with their separators
    width = 0
    for part in _ENCODED_PART.findall(match[0]):
        if _ENCODED_LINE.fullmatch(part) is None:
            held.append(part)
            continue
        is_last = len(part) < width
        if held and len(part) > width:
            made.append(_one_encoded("".join(held)))
            held = []
        held.append(part)
        width = 0 if is_last else len(part)
    return "".join([*made, _one_encoded("".join(held))])


def _one_encoded(text: str) -> str:
    part = text.rstrip()
    letters = set(part)
    if len(part) < _MIN_LENGTH or len(letters) < _VARIED or not any(map(str.isalnum, letters)):
        return text
    what = "characters without spaces"
    if letters <= _HEX:
        what = "digits" if letters <= _DIGITS else "hexadecimal"
    elif letters & _UPPER and letters & _LOWER and letters & _DIGITS and not (letters & _PLUS and letters & _MINUS):
        what = "base64"
    elif any(map(str.isspace, letters)):
        return text  # paths or names of equal length
    return _data(len(part), what) + text[len(part) :]


def _named_bytes(match: re.Match[str]) -> str:
    parts = _HEX_PART.findall(match[0])
    lettered = sum(_HEX_LETTER.search(part) is not None for part in parts)
    if len(match[0]) < _MIN_LENGTH or len(set(match[0])) < _VARIED or lettered < _HEX_SHARE * len(parts):
        return match[0]
    return _data(len(match[0]), "hexadecimal") + _space_after(match[0])


def _named_numbers(match: re.Match[str]) -> str:
    if len(match[0]) < 2 * _MIN_LENGTH:
        return match[0]
    return _data(len(match[0]), "numbers") + _space_after(match[0])


def _space_after(text: str) -> str:
    """Return the white space at the end of a text."""
    return text[len(text.rstrip()) :]


def _named_binary(match: re.Match[str]) -> str:
    return match[0] if len(match[0]) < _MIN_LENGTH // 4 else _data(len(match[0].encode(errors="replace")), "binary")


def _named_code(match: re.Match[str]) -> str:
    line = match[0]
    is_sparse = (line.count(" ") + line.count("\t")) * _SPARSE < len(line)
    if is_sparse and not _is_open(line) and len(_CODE_MARKS.findall(line)) * _MARKED > len(line):
        return _data(len(line.encode(errors="replace")), "minified code")
    return line


def _named_unbroken(match: re.Match[str]) -> str:
    is_list = match[0].count(",") * _LISTED > len(match[0])
    return (
        match[0]
        if is_list or len(set(match[0])) < _VARIED or _is_open(match[0])
        else _data(len(match[0]), "characters without spaces")
    )


def _is_open(text: str) -> bool:
    """Return whether a text without spaces is JSON or markup, which is readable."""
    return text.count('":') * _OPEN > len(text) or text.count("<") * _TAGGED > len(text)


def bytes_in(data: str | bytes) -> int:
    """Return the number of bytes in base64, a data URL or bytes."""
    if not isinstance(data, str):
        return len(data)
    encoded = data.partition(",")[2] if data_url(data) is not None else data
    return len(encoded.rstrip("=\r\n ")) * 3 // 4


def leaves(value: Any) -> Iterator[tuple[str, str | bytes]]:
    """Yield the texts and bytes in a value at any depth, each with its key; ids are omitted.

    It is iterative and visits a container once, so deep and cyclic values are safe.
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
    """Return the approximate size in bytes of any value as JSON; a value that JSON cannot hold counts as zero."""
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
class DataNames:
    """The named content of a message.

    Attributes:
        media: Images, sounds and files, each with its details.
        sizes: The bytes of all other content, by type.
    """

    media: list[str] = field(default_factory=list)
    sizes: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, size: int) -> None:
        """Add something to the total of its type."""
        self.sizes[name] = self.sizes.get(name, 0) + size

    def __str__(self) -> str:
        """Return all names in one bracket; empty if there are none."""
        named = [*self.media, *(f"{name}, {readable_size(size)}" for name, size in self.sizes.items())]
        return f"[{'; '.join(named)}]" if named else ""
