"""JSON Lines: an export of this package, or one ChatML or ShareGPT conversation per line."""

from __future__ import annotations

import re
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import documents
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.operations.columns import CARRIED
from langchain_supabase_memory.operations.rows import time_of
from langchain_supabase_memory.transfer import file_reader, ids
from langchain_supabase_memory.transfer.sources import chatml_sharegpt
from langchain_supabase_memory.transfer.values import (
    LossCount,
    SourceMessage,
    SourceProblem,
    ThreadEdits,
    ThreadOptOuts,
    ThreadStart,
    UserProfile,
    UserTopics,
)

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Mapping

    from langchain_supabase_memory.transfer.values import Event

_LEFT: Final = "superseded messages, which an import leaves out"
FORMAT: Final = 1
"""The version of the lines that an export writes."""

_KNOWN: Final = re.compile(rb'\s*\{\s*"kind"\s*:\s*"(message|edits|opt_outs|profile|topics)"')
"""Matches export lines that do not start a conversation, even if the rest of the line cannot be read."""

_HINT: Final = 'A line is of an export, {"messages": [...]} (ChatML) or {"conversations": [...]} (ShareGPT).'


def jsonl(path: str | os.PathLike[str], *, encoding: str | None = None) -> Iterator[Event]:
    """Read a file of JSON Lines: an export of this package, ChatML (`messages`) or ShareGPT (`conversations`).

    A line of ChatML or ShareGPT is a conversation. Its id is its `thread_id`, `conversation_id` or `id`; without one it
    is derived from the line.

    Args:
        path: The file.
        encoding: The file's encoding; by default it is detected from the first bytes, or UTF-8.
    """
    ours = _OwnFormat()
    for number, line in file_reader.lines(path, encoding):
        place = f"line {number}"
        try:
            document = documents.loads(line)
        except (ValueError, RecursionError):
            yield _unreadable(line, place)
            continue
        if not isinstance(document, dict):
            yield SourceProblem("The line is no JSON object.", _HINT, place, breaks=True)
        elif "kind" in document:
            yield from ours.read(document, place, len(line))
        elif isinstance(document.get("messages"), list):
            yield from _dialogue(document, "messages", line, place)
        elif isinstance(document.get("conversations"), list):
            yield from _dialogue(document, "conversations", line, place)
        else:
            yield SourceProblem("The line is no conversation.", _HINT, place, breaks=True)
    ours.end()


class _OwnFormat:
    """An export of this package, whose last line has the counts."""

    def __init__(self) -> None:
        self._began = False
        self._ended = False

    def read(self, document: Mapping[str, Any], place: str, size: int) -> Iterator[Event]:
        kind = document["kind"]
        if kind == "message":
            yield SourceMessage(place, row=document, size=size)
        elif kind == "conversation":
            yield from _thread(document, place)
        elif kind == "edits" and isinstance(document.get("edits"), dict):
            yield ThreadEdits(document["edits"], place)
        elif kind == "opt_outs" and isinstance(document.get("opt_outs"), list):
            yield ThreadOptOuts(document["opt_outs"], place)
        elif kind == "profile" and all(isinstance(document.get(name), list) for name in ("profile", "consents")):
            yield UserProfile({name: document[name] for name in ("profile", "consents")}, place)
        elif kind == "topics" and isinstance(document.get("topics"), list):
            yield UserTopics(document["topics"], place)
        elif kind == "export":
            self._began, self._ended = True, False
            if document.get("format") != FORMAT:
                raise InvalidInputError(
                    f"{place}: The export is of another format than this release reads.",
                    hint="Import it with the release that wrote it, or a newer one.",
                )
        elif kind == "end":
            self._ended = True
        elif kind == "superseded":
            yield LossCount(_LEFT, place)  # no graph continues from an import, so none could return to it
        else:
            yield SourceProblem(
                "The line is of no kind that an export has.",
                "Take the line as it was exported.",
                place,
                breaks=kind not in ("edits", "opt_outs", "profile", "topics"),
            )

    def end(self) -> None:
        if self._began and not self._ended:
            raise InvalidInputError(
                "The export ends in the middle: its last line is missing.",
                hint="Export it again: what is missing was never written.",
            )


_TYPES: Final[Mapping[str, Any]] = {"thread_id": str, "metadata": dict | None}
"""The types of a conversation's columns that are neither a time nor an optional text."""


def _thread(document: Mapping[str, Any], place: str) -> Iterator[Event]:
    opt_outs = document.get("opt_outs") or []
    carried: dict[str, Any] = {name: document.get(name) for name in CARRIED}
    times = {name: value for name, value in carried.items() if name.endswith("_at")}
    if not isinstance(opt_outs, list) or not all(
        isinstance(carried[name], _TYPES.get(name, str | None)) for name in carried.keys() - times
    ):
        yield SourceProblem(
            "The conversation's line cannot be read.", "Take the line as it was exported.", place, breaks=True
        )
        return
    try:
        carried |= {name: time_of(value) for name, value in times.items()}
    except (TypeError, ValueError):
        yield SourceProblem(
            "The conversation's time cannot be read.", "Write it as 2026-01-31T12:00:00Z.", place, breaks=True
        )
        return
    yield ThreadStart(place=place, opt_outs=opt_outs, stands_alone=True, **carried)


def _dialogue(document: Mapping[str, Any], kind: str, line: bytes, place: str) -> Iterator[Event]:
    named = next((document[name] for name in ("thread_id", "conversation_id", "id") if document.get(name)), None)
    derived = ids.thread_id(kind, sha256(line.strip()).hexdigest())
    title = document.get("title")
    thread = str(named) if isinstance(named, str | int) else derived
    yield ThreadStart(thread, place, title=title if isinstance(title, str) else None)
    read = chatml_sharegpt.chatml if kind == "messages" else chatml_sharegpt.sharegpt
    yield from read(document[kind], thread, place)


def _unreadable(line: bytes, place: str) -> SourceProblem:
    try:
        line.decode("utf-8")
    except UnicodeError:
        why, hint = "The text is not written in UTF-8.", file_reader.encoding_error(place).hint
    else:
        why, hint = "The line is no JSON, or is nested too deeply.", _HINT
        if not line.endswith(b"\n"):
            why, hint = "The file ends in the middle of the line.", "Export or download the file again."
    return SourceProblem(why, hint, place, breaks=_KNOWN.match(line) is None)
