"""Decode stored messages for a prompt, and keep what was decoded and measured: a turn does it for new ones only.

Each turn reads all its messages from the database, under the rights of who asks. What is kept serves only the very
payload that it was made from, byte by byte: an edited message is decoded anew, and so is another owner's, unless the
database gave that owner the same bytes. Whoever asks gets a message of their own.
"""

from __future__ import annotations

import marshal
import time
from collections import OrderedDict
from copy import copy
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import fork
from langchain_supabase_memory.language.messages import codec, sanitizer
from langchain_supabase_memory.language.messages.blocks import PromptEntry, is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_BYTES: Final = 32_000_000
"""How many bytes of memory are kept, about."""

_OVERHEAD: Final = 1_000
"""What a kept message takes at least, in bytes."""
_OF_TEXT: Final = 2
_OF_VALUES: Final = 8
"""How many bytes in memory a byte of a payload becomes: of a text, and of numbers, lists and keys."""
_SECONDS: Final = 900.0
"""How long words are kept that no turn reads."""
_LONGEST: Final = 100_000
"""Longer payloads are not kept: they are few, and rarely shown."""
_EXACT: Final = 0
"""A version of `marshal` that writes equal values equally, and `1`, `1.0` and `true` differently."""
_TAG: Final = sanitizer.TAG.encode()


@dataclass(slots=True)
class _Decoded:
    """A decoded message.

    Attributes:
        entry: The message with its measures; never handed out.
        size: The bytes of memory that it takes, about.
        used_at: When a turn read it last, by the monotonic clock.
    """

    entry: PromptEntry
    size: int
    used_at: float


class DecodedEntries:
    """Decoded messages of this process. Every method is safe to call from any thread.

    Args:
        most_bytes: How many bytes of memory are kept, about.
    """

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self._most = most_bytes
        self.clear()

    def clear(self) -> None:
        """Keep nothing, and begin with a lock that nobody holds, as a child process has to."""
        self._lock = Lock()
        self._known: OrderedDict[bytes, _Decoded] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """How many bytes are kept, about."""
        return self._size

    def decode(self, payloads: Sequence[Mapping[str, Any]]) -> list[PromptEntry]:
        """Return an entry for each payload, with a message of its own, and measured where it was decoded before.

        Args:
            payloads: Stored messages, as the database answered them.
        """
        keys = [_key(payload) for payload in payloads]
        entries = self._find(keys)
        missing = [place for place, entry in enumerate(entries) if entry is None]
        decoded = codec.from_payloads([payloads[place] for place in missing])
        for place, message in zip(missing, decoded, strict=True):
            entry, key = PromptEntry(message), keys[place]
            if key is not None and is_plain(message):
                self._keep(key, entry)
                entry = _own(entry)
            entries[place] = entry
        return [entry for entry in entries if entry is not None]

    def _find(self, keys: Sequence[bytes | None]) -> list[PromptEntry | None]:
        now = time.monotonic()
        found: list[PromptEntry | None] = []
        with self._lock:
            self._drop_old(now)
            for key in keys:
                known = None if key is None else self._known.get(key)
                if key is None or known is None:
                    found.append(None)
                    continue
                known.used_at = now
                self._known.move_to_end(key)
                found.append(known.entry)
        return [None if entry is None else _own(entry) for entry in found]

    def _keep(self, key: bytes, entry: PromptEntry) -> None:
        with self._lock:
            self._remove(key)
            self._known[key] = _Decoded(entry, _size(key, entry), time.monotonic())
            self._size += self._known[key].size
            while self._size > self._most:
                self._remove(next(iter(self._known)))

    def _drop_old(self, now: float) -> None:
        while self._known:
            key = next(iter(self._known))
            if self._known[key].used_at > now - _SECONDS:
                break
            self._remove(key)

    def _remove(self, key: bytes) -> None:
        if (known := self._known.pop(key, None)) is not None:
            self._size -= known.size


DECODED: Final = DecodedEntries()
"""What this process has decoded."""
fork.run_in_each_process(lambda: DECODED.clear())  # a bound method is held weakly, and complains at the exit


def _key(payload: Any) -> bytes | None:
    """Return what names a payload, all of it; `None` if it is long, or has no id, or more than text and plain JSON."""
    data = payload.get("data") if isinstance(payload, dict) else None
    if not (isinstance(data, dict) and isinstance(data.get("id"), str) and isinstance(data.get("content"), str)):
        return None
    if len(data["content"]) > _LONGEST:
        return None
    try:
        key = marshal.dumps((payload.get("type"), data), _EXACT)
    except ValueError:  # nested too deeply, or what no JSON has
        return None
    # A tagged value becomes a set, a tuple or an object, which no copy of JSON makes apart.
    return None if len(key) > _LONGEST or _TAG in key else key


def _size(key: bytes, entry: PromptEntry) -> int:
    text = len(str(entry.message.content).encode(errors="replace"))
    return _OF_TEXT * text + _OF_VALUES * (len(key) - text) + _OVERHEAD


def _own(entry: PromptEntry) -> PromptEntry:
    """Return an entry with a message that the caller may change; it is measured once for all of its kind."""
    message = copy(entry.message)
    for values in (message.__dict__, message.__pydantic_extra__ or {}):
        values.update({name: _copied(value) for name, value in values.items() if type(value) in (dict, list)})
    return PromptEntry(message).like(entry)


def _copied(value: Any) -> Any:
    """Return a copy of what JSON has."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()} if value else {}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value
