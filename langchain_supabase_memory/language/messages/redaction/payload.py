"""Redact all of a message: texts, blocks, calls, results, artifacts, and provider metadata."""

from __future__ import annotations

import base64
import binascii
import codecs
import json
import re
from typing import TYPE_CHECKING, Any, Final, cast

from langchain_supabase_memory.language.messages.redaction.redactor import Redaction
from langchain_supabase_memory.language.messages.redaction.size_limit import CharacterLimit, text_in
from langchain_supabase_memory.language.messages.sanitizer import TAG, unique_key

if TYPE_CHECKING:
    from collections.abc import Callable, Container, Mapping

    from langchain_supabase_memory.language.messages.redaction.redactor import Redactor

# Fields with ids, types and numbers.
_LEFT: Final = frozenset({"id", "type", "tool_call_id", "status", "usage_metadata", "example"})
# The same in a block, a call, and a provider's response metadata.
_IDS: Final = frozenset({"id", "type", "index", "tool_call_id", "tool_use_id", "call_id", "status"})
_MEDIA_KEYS: Final = frozenset({"data", "base64", "file_data"})
_BASE64: Final = re.compile(r"[A-Za-z0-9+/\r\n]*={0,2}\s*")
_DATA_URL: Final = re.compile(
    r"(?ai)data:(?P<type>[\w.+/-]{0,100})(?:;[\w=.+-]{1,100}){0,5};base64,"
    r"(?P<data>(?:[a-z0-9+/]{60,}+\r?\n)*+[a-z0-9+/]*+={0,2})"
)
"""Contains no blanks; if it has line breaks, its lines are long."""

_MEDIA_TYPE: Final = re.compile(r"(?ai)(?:image|audio|video|font|model|application)/[\w.+-]+")
_NO_NAME: Final = re.compile(r"[^\w-]+")
"""Characters that providers reject in a speaker's name."""

_SHORTEST_MEDIA: Final = 64
"""Shorter base64 may itself be a secret."""

_FEWEST_DIGITS: Final = 7
"""Shorter integers match no rule."""

_NESTED: Final = 4
"""The maximum nesting of JSON within JSON texts that is searched."""

_DEEPEST: Final = 30


def redact_payload(data: Mapping[str, Any], redactor: Redactor) -> dict[str, Any]:
    """Remove all rule matches from a message's payload data. Ids and media stay; the input is not changed.

    Args:
        data: JSON from the sanitizer.
        redactor: The redactor.

    Raises:
        ConfigurationError: A rule failed.
    """
    whole = _limited(data, redactor)
    walk = _PayloadWalk(Redaction(redactor))
    made = {key: item if key in _LEFT else walk.field(key, item) for key, item in whole.items()}
    made = cast("dict[str, Any]", _limited(made, redactor))  # marks may be longer than the text they replace
    if made != data and "logprobs" in (made.get("response_metadata") or {}):
        # They repeat the answer, token by token.
        made["response_metadata"] = {**made["response_metadata"], "logprobs": None}
    return made


def redact_value(value: Any, redactor: Redactor | None) -> Any:
    """Remove everything that the rules find from any JSON; return it unchanged without a redactor.

    Raises:
        ConfigurationError: A rule failed.
    """
    if redactor is None:
        return value
    return _limited(_PayloadWalk(Redaction(redactor)).value(_limited(value, redactor)), redactor)


def _limited(value: Any, redactor: Redactor) -> Any:
    """Remove the part of any JSON that exceeds the redactor's reading limit."""
    return CharacterLimit(Redaction(redactor).places, _is_media_url, _file).limit_value(value)


def _is_media_url(text: str) -> bool:
    """Return whether a text is only the data URL of an image, a recording, or another nontext file."""
    url = _DATA_URL.fullmatch(text.strip())
    return url is not None and _MEDIA_TYPE.fullmatch(url["type"]) is not None and not text_in(url["data"])


def _file(value: Mapping[str, Any]) -> tuple[str, int] | None:
    """Return the key of a base64 file in a mapping, and the number of its bytes that are read as text."""
    key = "value" if value.get(TAG) in ("bytes", "bytearray") else None
    if key is None and _is_media(value):
        key = next((each for each in _MEDIA_KEYS if each in value), None)
    held = None if key is None else value.get(key)
    if key is None or not isinstance(held, str) or _BASE64.fullmatch(held) is None:
        return None
    return key, len(held) if _is_text(value) else text_in(held)


class _PayloadWalk:
    """A traversal of one message."""

    def __init__(self, redaction: Redaction) -> None:
        self._redaction = redaction

    def field(self, key: str, item: Any) -> Any:
        """Redact a field of a message."""
        if key == "name" and isinstance(item, str):
            made = self._redaction.text(item)
            return item if made == item else _NO_NAME.sub("_", made).strip("_")
        if key == "content" and isinstance(item, list):
            return self._content(item)
        if key in ("tool_calls", "invalid_tool_calls") and isinstance(item, list):
            return [self._known_block(each) for each in item]
        if key == "additional_kwargs" and isinstance(item, dict):
            calls = item.get("tool_calls")
            made = self.value({**item, "tool_calls": None} if isinstance(calls, list) else item)
            return (
                {**made, "tool_calls": [self._known_block(each) for each in calls]} if isinstance(calls, list) else made
            )
        if key == "response_metadata" and isinstance(item, dict):
            kept = {name: item[name] for name in ("id", "logprobs") if name in item}
            made = self.value({name: None if name in kept else each for name, each in item.items()})
            return {**made, **kept}
        return self.value(item)

    def value(self, value: Any, name: str | None = None, depth: int = 0) -> Any:
        """Redact any JSON.

        Args:
            value: The JSON.
            name: The rule that covers all of it, because of its key.
            depth: The number of enclosing JSON texts.
        """
        if isinstance(value, str):
            return self._text(value, depth) if name is None else self._redaction.redact_all(name, value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, (int, float)):
            return self._number(value, name)
        if isinstance(value, list):
            return [self.value(each, name, depth) for each in value]
        if not isinstance(value, dict):
            return value
        if value.keys() == {TAG, "value"}:
            return self._tagged(value, name, depth)
        return self._mapping(value, name, depth)

    def _mapping(
        self, value: Mapping[str, Any], name: str | None, depth: int, skipped: Container[str] = ()
    ) -> dict[str, Any]:
        made: dict[str, Any] = {}
        numbers: dict[str, int] = {}
        is_media = _is_media(value)
        for key, item in value.items():
            if key in skipped and isinstance(item, (str, int)):
                made[key] = item
                continue
            shown = unique_key(self._redaction.text(key), made, numbers)
            meant = name or self._redaction.covering(key, item)
            is_data = meant is None and is_media and key in _MEDIA_KEYS and isinstance(item, str)
            if is_data and _BASE64.fullmatch(item):
                made[shown] = self._media(item, depth, is_text=_is_text(value))
            else:
                made[shown] = self.value(item, meant, depth)
        return made

    def _content(self, blocks: list[Any]) -> list[Any]:
        """Redact content blocks. Their texts are joined first, since streaming may have split them anywhere."""
        made = list(blocks)
        places = [place for place, block in enumerate(blocks) if _text_of(block) is not None]
        pieces = self._redaction.texts([str(_text_of(blocks[place])) for place in places])
        for place, piece in zip(places, pieces, strict=True):
            if not piece and _text_of(blocks[place]):
                made[place] = None  # providers reject an empty text
            else:
                made[place] = piece if isinstance(made[place], str) else {**made[place], "text": piece}
        return [self._known_block(block) for block in made if block is not None]

    def _known_block(self, block: Any) -> Any:
        """Redact a block or a call: its own ids stay, nested ones do not."""
        return self._mapping(block, None, 0, _IDS) if isinstance(block, dict) else self.value(block)

    def _text(self, text: str, depth: int) -> str:
        if depth < _NESTED:
            text = _DATA_URL.sub(lambda match: self._data_url(match, depth), text)
            url = _DATA_URL.fullmatch(text.strip())
            if url is not None and _MEDIA_TYPE.fullmatch(url["type"]):
                return text
            if text.lstrip()[:1] in ("{", "["):
                text = self._json(text, depth)
        return self._redaction.text(text)

    def _data_url(self, url: re.Match[str], depth: int) -> str:
        data = self._media(url["data"], depth, is_text=_MEDIA_TYPE.fullmatch(url["type"]) is None)
        return url[0].removesuffix(url["data"]) + data

    def _media(self, encoded: str, depth: int, *, is_text: bool) -> str:
        """Redact the data of an image or a file. If it is text, the text is searched."""
        made = _recoded(encoded, lambda text: self.value(text, None, depth + 1), is_text=is_text)
        if made != encoded or (len(encoded) >= _SHORTEST_MEDIA and not is_text):
            return made
        return self._redaction.text(encoded)

    def _json(self, text: str, depth: int) -> str:
        """Redact a JSON text, such as a call's arguments: escapes are decoded for the search, and it stays JSON."""
        try:
            parsed = json.loads(text)
        except (ValueError, RecursionError):
            return text
        if _is_deep(parsed):
            return text
        made = self.value(parsed, None, depth + 1)
        return text if made == parsed else json.dumps(made, ensure_ascii=False)

    def _number(self, number: float, name: str | None) -> Any:
        if name is not None:
            return self._redaction.redact_all(name, str(number))
        if isinstance(number, float) and not number.is_integer():
            return number
        whole = int(number)
        if abs(whole) < 10 ** (_FEWEST_DIGITS - 1) or whole.bit_length() > 256:
            return number
        text = str(whole)
        made = self._redaction.text(text)
        return number if made == text else made

    def _tagged(self, value: Mapping[str, Any], name: str | None, depth: int) -> Any:
        kind, item = value[TAG], value["value"]
        if kind in ("tuple", "set", "frozenset") and isinstance(item, list):
            return {TAG: kind, "value": self.value(item, name, depth)}
        if kind == "dict" and isinstance(item, list):
            return {TAG: kind, "value": [self._pair(each, name, depth) for each in item]}
        if kind in ("bytes", "bytearray") and isinstance(item, str):
            return {TAG: kind, "value": _recoded(item, lambda text: self.value(text, name, depth))}
        text = str(item)
        if name is None and kind == "decimal":
            made = self._redaction.text(text)
            return dict(value) if made == text else made
        return dict(value) if name is None else self._redaction.redact_all(name, text)

    def _pair(self, pair: Any, name: str | None, depth: int) -> Any:
        if not (isinstance(pair, list) and len(pair) == 2):
            return self.value(pair, name, depth)
        key, item = pair
        meant = name or (self._redaction.covering(key, item) if isinstance(key, str) else None)
        return [self.value(key, None, depth), self.value(item, meant, depth)]


def _text_of(block: Any) -> str | None:
    """Return the text of a pure text block."""
    if isinstance(block, str):
        return block
    is_text = isinstance(block, dict) and block.get("type") == "text" and isinstance(block.get("text"), str)
    return block["text"] if is_text else None


def _is_media(block: Mapping[str, Any]) -> bool:
    """Return whether a mapping holds the data of an image or a file."""
    return block.get("type") != "text" and (
        "base64" in (block.keys() | {block.get("type"), block.get("source_type")})
        or any(key in block for key in ("mime_type", "media_type", "mimeType", "format", "file_data"))
    )


def _is_deep(parsed: Any) -> bool:
    """Return whether JSON is nested too deeply to traverse; it is then searched as text."""
    level = [parsed]
    for _ in range(_DEEPEST):
        level = [item for each in level for item in (each.values() if isinstance(each, dict) else each)]
        level = [each for each in level if isinstance(each, (dict, list))]
        if not level:
            return False
    return True


def _is_text(block: Mapping[str, Any]) -> bool:
    """Return whether a mapping declares its data as text."""
    kinds = (block.get(key) for key in ("mime_type", "media_type", "mimeType"))
    return any(isinstance(kind, str) and kind.lower().startswith("text/") for kind in kinds)


def _recoded(encoded: str, redact: Callable[[str], Any], *, is_text: bool = False) -> str:
    """Redact bytes that are text; return other bytes unchanged.

    Args:
        encoded: The bytes, in base64.
        redact: Redacts the text.
        is_text: Whether the bytes are declared as text, in any encoding.
    """
    try:
        data = base64.b64decode(encoded + "==")  # padding may be missing
    except (binascii.Error, ValueError):
        return encoded
    others = ["utf-16" if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE) else "latin-1"] if is_text else []
    for encoding in ["utf-8", *others]:
        try:
            text = data.decode(encoding)
        except UnicodeDecodeError:
            continue
        made = redact(text)
        return encoded if made == text else base64.b64encode(str(made).encode(encoding, "replace")).decode()
    return encoded
