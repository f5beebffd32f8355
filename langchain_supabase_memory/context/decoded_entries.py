"""Decode stored messages for a prompt, and keep what was decoded and measured: a turn does it for new ones only.

Each turn reads all its messages from the database, under the rights of who asks. What is kept serves only a payload
equal to the one that it was made from, so an edited message, a fork's or another owner's is decoded anew.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import fork
from langchain_supabase_memory.language.messages import codec
from langchain_supabase_memory.language.messages.blocks import PromptEntry, is_plain

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_CHARACTERS: Final = 32_000_000
"""How many characters of messages are kept at most."""

_OVERHEAD: Final = 2_000
"""What a kept message takes beside its text, in characters."""
_SECONDS: Final = 900.0
"""How long words are kept that no turn reads."""
_LONGEST: Final = 100_000
"""Longer messages are not kept: they are few, and rarely shown."""

_Key = tuple[str, str, str]


@dataclass(slots=True)
class _Decoded:
    """A decoded message.

    Attributes:
        data: The payload's data, which another must equal.
        entry: The message with its measures; never handed out.
        used_at: When a turn read it last, by the monotonic clock.
    """

    data: Any
    entry: PromptEntry
    used_at: float


class DecodedEntries:
    """Decoded messages of this process. Every method is safe to call from any thread.

    Args:
        most_characters: How many characters are kept at most.
    """

    def __init__(self, most_characters: int = MOST_CHARACTERS) -> None:
        self._most = most_characters
        self.clear()

    def clear(self) -> None:
        """Keep nothing, and begin with a lock that nobody holds, as a child process has to."""
        self._lock = Lock()
        self._known: OrderedDict[_Key, _Decoded] = OrderedDict()
        self._size = 0

    @property
    def size(self) -> int:
        """How many characters are kept, with what a message takes beside its text."""
        return self._size

    def decode(self, payloads: Sequence[Mapping[str, Any]]) -> list[PromptEntry]:
        """Return an entry for each payload, with a message of its own, and measured where it was decoded before.

        Args:
            payloads: Stored messages, as the database answered them.
        """
        keys = [_key(payload) for payload in payloads]
        entries = self._find(keys, payloads)
        missing = [place for place, entry in enumerate(entries) if entry is None]
        decoded = codec.from_payloads([payloads[place] for place in missing])
        for place, message in zip(missing, decoded, strict=True):
            entry, key = PromptEntry(message), keys[place]
            if key is not None and len(key[2]) <= _LONGEST and is_plain(message):
                self._keep(key, payloads[place]["data"], entry)
                entry = _own(entry)
            entries[place] = entry
        return [entry for entry in entries if entry is not None]

    def _find(self, keys: Sequence[_Key | None], payloads: Sequence[Mapping[str, Any]]) -> list[PromptEntry | None]:
        now = time.monotonic()
        found: list[PromptEntry | None] = []
        with self._lock:
            self._drop_old(now)
            for key, payload in zip(keys, payloads, strict=True):
                known = None if key is None else self._known.get(key)
                if key is None or known is None or known.data != payload["data"]:
                    found.append(None)
                    continue
                known.used_at = now
                self._known.move_to_end(key)
                found.append(known.entry)
        return [None if entry is None else _own(entry) for entry in found]

    def _keep(self, key: _Key, data: Any, entry: PromptEntry) -> None:
        with self._lock:
            self._remove(key)
            self._known[key] = _Decoded(data, entry, time.monotonic())
            self._size += _size(key)
            while self._size > self._most:
                self._remove(next(iter(self._known)))

    def _drop_old(self, now: float) -> None:
        while self._known:
            key = next(iter(self._known))
            if self._known[key].used_at > now - _SECONDS:
                break
            self._remove(key)

    def _remove(self, key: _Key) -> None:
        if self._known.pop(key, None) is not None:
            self._size -= _size(key)


DECODED: Final = DecodedEntries()
"""What this process has decoded."""
fork.run_in_each_process(lambda: DECODED.clear())  # a bound method is held weakly, and complains at the exit


def _key(payload: Any) -> _Key | None:
    """Return what names a payload: its type, id and text; `None` if it has no id, or more than text."""
    data = payload.get("data") if isinstance(payload, dict) else None
    if not isinstance(data, dict):
        return None
    kind, name, text = payload.get("type"), data.get("id"), data.get("content")
    if isinstance(kind, str) and isinstance(name, str) and isinstance(text, str):
        return kind, name, text
    return None


def _size(key: _Key) -> int:
    return len(key[2]) + _OVERHEAD


def _own(entry: PromptEntry) -> PromptEntry:
    """Return an entry with a message that the caller may change; it is measured once for all of its kind."""
    message = entry.message
    update = {name: _copied(value) for name, value in message.__dict__.items() if type(value) in (dict, list)}
    return PromptEntry(message.model_copy(update=update)).like(entry)


def _copied(value: Any) -> Any:
    """Return a copy of what JSON has."""
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()} if value else {}
    if isinstance(value, list):
        return [_copied(each) for each in value]
    return value
