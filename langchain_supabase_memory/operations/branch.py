"""A graph's branch: what its newest state holds, told apart from what is stored without sending all of it."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from langchain_core.messages import BaseMessage, HumanMessage, SystemMessage

from langchain_supabase_memory import fork
from langchain_supabase_memory.language.messages import content

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from langchain_supabase_memory.values import ConversationKey

OURS: Final = "lc_supabase_memory"
"""How the ids begin of the messages that this package puts into a prompt."""

_CHECKPOINTER: Final = "__pregel_checkpointer"
"""LangGraph's key for the run's checkpointer; written out, so that `langgraph` is not imported for it."""

_BESIDE: Final = ("name", "additional_kwargs", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")
"""What counts of a message beside its words."""

_MOST_KNOWN: Final = 10_000
"""Of how many conversations it is remembered what was stored last."""


@dataclass(frozen=True)
class Lineage:
    """What a state's lack of a message means.

    Attributes:
        whole: The state is kept between runs and nothing was trimmed from it: what it lacks was removed.
        begun: With that, the state goes on from an earlier one, even if it has nothing of what is stored.
        tail: The state holds a selection of ours: only what is newer than all of it can have been left.
    """

    whole: bool = False
    begun: bool = False
    tail: bool = False


ALONE: Final = Lineage()
"""Of a state that may have been trimmed, and of none."""


def lineage(
    messages: Sequence[BaseMessage], config: Mapping[str, Any] | None, *, trims: bool, begun: bool = False
) -> Lineage:
    """What the lack of a message means in a run.

    Args:
        messages: The state's.
        config: The run's configuration.
        trims: Whether the application trims the state itself.
        begun: Whether the state is known to go on from an earlier one; a fork is known by itself.
    """
    found = config or {}
    kept = (found.get("configurable") or {}).get(_CHECKPOINTER) is not None
    # A run that names a checkpoint goes on from there; LangGraph moves the name from the ids to the metadata.
    forked = (found.get("metadata") or {}).get("checkpoint_id") is not None
    whole = kept and not trims and not any(map(_tells_of_others, messages))
    return Lineage(whole, whole and (begun or forked), any(str(each.id).startswith(OURS) for each in messages))


def _tells_of_others(message: BaseMessage) -> bool:
    """Whether a message stands for others that were trimmed."""
    if str(message.id).startswith(OURS):
        return True
    source = content.source(message)
    return source not in (None, content.OURS) and isinstance(message, (HumanMessage, SystemMessage))


@dataclass(frozen=True)
class Record:
    """What was stored last.

    Attributes:
        token: Names it in the database.
        marks: Places in it: the id of a message, and the digest of all messages up to that one. The last is its end.
        first: The id of the first message that counts, where those before it are older than what is stored.
    """

    token: str
    marks: list[tuple[str, str]]
    first: str | None = None

    @classmethod
    def of(cls, held: Mapping[str, Any] | None) -> Record | None:
        """What `to_dict` made; `None` of nothing."""
        return (
            None if held is None else cls(held["token"], [(each[0], each[1]) for each in held["marks"]], held["first"])
        )

    def to_dict(self) -> dict[str, Any]:
        """For a graph's state: names and digests, no content."""
        return {"token": self.token, "marks": [list(mark) for mark in self.marks], "first": self.first}


class Records:
    """What was stored last in the newest conversations. Every method is safe to call from any thread."""

    def __init__(self) -> None:
        fork.in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[ConversationKey, Record] = OrderedDict()

    def of(self, key: ConversationKey) -> Record | None:
        """What was stored last in a conversation by this process, if that is known."""
        with self._lock:
            return self._held.get(key)

    def keep(self, key: ConversationKey, record: Record) -> None:
        """Remember what was stored."""
        with self._lock:
            self._held[key] = record
            self._held.move_to_end(key)
            while len(self._held) > _MOST_KNOWN:
                self._held.popitem(last=False)


def digests(messages: Sequence[BaseMessage]) -> list[str]:
    """For each message the digest of it and all before it: of who said what, and of what the application noted."""
    found: list[str] = []
    running = hashlib.blake2b(digest_size=16)
    for message in messages:
        # Plain words are not written out anew: a long history is looked at before and after each call of the model.
        words = message.content if isinstance(message.content, str) else repr(message.content)
        fields = [getattr(message, name, None) for name in _BESIDE]
        said = f"{message.id}\0{message.type}\0{fields if any(fields) else ''}\0{len(words)}\0{words}"
        running.update(said.encode("utf-8", "surrogatepass"))
        found.append(running.hexdigest())
    return found


def known(messages: Sequence[BaseMessage], chain: Sequence[str], record: Record | None) -> tuple[int, bool]:
    """How many of the messages are stored as they are, as far as is known, and whether nothing else was stored."""
    if record is None:
        return 0, False
    places = {message.id: place for place, message in enumerate(messages)}
    for back, (message_id, digest) in enumerate(reversed(record.marks)):
        place = places.get(message_id)
        if place is not None and chain[place] == digest:
            return place + 1, back == 0
    return 0, False


def marks(messages: Sequence[BaseMessage], chain: Sequence[str], turn: int) -> list[tuple[str, str]]:
    """The places to remember: where the current turn begins, and the end.

    Args:
        messages: All that the state holds.
        chain: Their digests.
        turn: How many of them come before the current turn.
    """
    places = sorted({place for place in (turn - 1, len(messages) - 1) if place >= 0})
    return [(str(messages[place].id), chain[place]) for place in places]
