"""Find passwords in URLs, `scheme://user:password@host`, even with characters that should have been escaped."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

    from langchain_supabase_memory.language.messages.redaction.rules import Span

_USER: Final = re.compile(
    r"(?P<scheme>[A-Za-z0-9+.-]{0,32})://[^\s:/?\#\"'<>`]{0,128}+:(?!\d{1,5}[/?\#])(?=[^\s\"'<>`]{1,512}@)"
)
_REST: Final = re.compile(r"[^\s\"'<>`]{1,768}+")
_ANOTHER: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{1,32}://")
_QUERY: Final = re.compile(r"\?[\w.-]{1,64}=")
_HOST: Final = re.compile(
    r"(?:[\w-]{1,63}\.[\w.-]{1,190}|localhost|\[[0-9A-Fa-f:.]{2,45}\]|[\w-]{1,63}:\d{1,5})(?=[/?#,:;)\]]|\Z)"
)
_WEB: Final = frozenset({"http", "https", "ws", "wss", "git", "git+https", "git+http", "ssh", "git+ssh"})
"""Schemes whose paths often contain an `@`; passwords in other schemes are often pasted unescaped."""


def url_passwords(text: str) -> Iterator[Span]:
    """Yield the spans of the passwords in URLs."""
    place = 0
    while (user := _USER.search(text, place)) is not None:
        place = start = user.end()
        end = start + _length(_rest(text, start), user["scheme"].lower())
        if end > start:
            yield start, end
            place = end


def _rest(text: str, start: int) -> str:
    """Return the text after the user name that can belong to the same URL, without its query."""
    rest = _REST.match(text, start)
    shown = "" if rest is None else rest[0]
    another = _ANOTHER.search(shown)
    shown = shown if another is None else shown[: another.start()]
    for query in _QUERY.finditer(shown):
        if "@" in shown[: query.start()]:
            return shown[: query.start()]
    return shown


def _length(rest: str, scheme: str) -> int:
    """Return the length of a password by the `@` that ends it; 0 if there is none."""
    last = rest.rfind("@")
    if last <= 0 or scheme not in _WEB:
        return max(last, 0)
    slash = rest.find("/")
    first = rest.rfind("@", 0, slash) if slash >= 0 else last
    at = first if first > 0 else rest.find("@", 1)
    while at != last and not _HOST.match(rest, at + 1):
        at = rest.find("@", at + 1)
    return at
