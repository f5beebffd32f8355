"""The branch of a graph's state: find out how the state differs from the stored messages without sending all of it.

Only a state that once held a message can remove it. What a state held is in its record, where the graph stores one, and
in earlier checkpoints. When a run names the checkpoint that it resumes from, the database knows what the run leaves
behind.
"""

from __future__ import annotations

import hashlib
import threading
from base64 import b64encode
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import fork
from langchain_supabase_memory.language.messages import codec

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import ConversationKey

OURS: Final = "lc_supabase_memory"
"""The prefix of the ids of messages that this package adds to a prompt."""

_CHECKPOINTER: Final = "__pregel_checkpointer"
"""LangGraph's key for the run's checkpointer; copied here so that `langgraph` need not be imported."""

_DURABILITY: Final = "__pregel_durability"
"""LangGraph's key for when checkpoints are written."""

_RESUMING: Final = "__pregel_resuming"
"""LangGraph's key for whether a run goes on from a checkpoint without a new input."""

_BESIDE: Final = ("name", "additional_kwargs", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")
"""The fields of a message that count in addition to its content."""

_MAX_KNOWN: Final = 10_000
"""The maximum number of conversations whose last stored state is remembered."""

_HELD_CHARACTERS: Final = 8
"""How many characters of a record represent one message: 48 bits of a digest."""


@dataclass(frozen=True)
class Lineage:
    """The origin of a graph's state.

    Attributes:
        checkpoint_id: Whether the run names the checkpoint that it resumes from; everything after that checkpoint
            is left.
        saver: The run's checkpointer; `None` without one.
        place: The ids of the state's current checkpoint: `thread_id`, `checkpoint_ns` and `checkpoint_id`.
        is_written: Whether checkpoints are written during a run, and not only at its end.
        run: The run of the LangGraph server; `None` outside a server.
        is_resumed: Whether this is the first step of a run that goes on from the thread's newest checkpoint without a
            new input: after an interrupt, an error or a killed process.
    """

    checkpoint_id: bool = False
    saver: Any = None
    place: Mapping[str, str] | None = None
    is_written: bool = True
    run: str | None = None
    is_resumed: bool = False

    @property
    def task(self) -> str:
        """The unique id of the task that runs this graph; empty for a graph that is not a task."""
        namespace = "" if self.place is None else self.place["checkpoint_ns"]
        return namespace if ":" in namespace.rpartition("|")[2] else ""


ALONE: Final = Lineage()
"""The lineage of a list of messages that is not a graph's state."""


def lineage(config: Mapping[str, Any] | None) -> Lineage:
    """Return the origin of a run's state.

    Args:
        config: The configuration of the running node.
    """
    found = config or {}
    configurable: Mapping[str, Any] = found.get("configurable") or {}
    # LangGraph moves the checkpoint's id from the ids to the metadata.
    named = (found.get("metadata") or {}).get("checkpoint_id") is not None
    namespace = str(configurable.get("checkpoint_ns") or "").rpartition("|")[0]
    checkpoint = (configurable.get("checkpoint_map") or {}).get(namespace)
    run = str(configurable["run_id"]) if configurable.get("run_id") and configurable.get("assistant_id") else None
    if checkpoint is None:
        return Lineage(named, configurable.get(_CHECKPOINTER), run=run)
    place = {
        "thread_id": str(configurable.get("thread_id")),
        "checkpoint_ns": namespace,
        "checkpoint_id": checkpoint,
    }
    is_resumed = bool(configurable.get(_RESUMING)) and not named
    is_written = configurable.get(_DURABILITY) != "exit"
    return Lineage(named, configurable.get(_CHECKPOINTER), place, is_written, run, is_resumed)


@dataclass(frozen=True)
class StateOwner:
    """The owner of a record's state, as a digest without names.

    Attributes:
        user: A digest of the user's id.
        database: The database's identity.
        agent_id: The agent.
        thread_id: The thread.
    """

    user: str
    database: str
    agent_id: str
    thread_id: str

    @classmethod
    def from_answer(cls, key: ConversationKey, answer: Mapping[str, Any]) -> StateOwner | None:
        """Read the owner from the database's answer; `None` if it was not requested."""
        if "owner" not in answer:
            return None
        return cls(answer["owner"], answer["database"], key.agent_id, key.thread_id)


@dataclass(frozen=True)
class StateRecord:
    """The state that was stored last.

    Attributes:
        token: The state's token in the database.
        marks: Positions in the state: the id of a message, and the digest of all messages up to it. The last mark
            is the end.
        first: The id of the first message that counts, if earlier ones are older than what is stored.
        ids: The short digests of the message ids.
        owner: The owner; `None` until the database has reported it.
    """

    token: str
    marks: list[tuple[str, str]]
    first: str | None = None
    ids: str = ""
    owner: StateOwner | None = None

    @classmethod
    def from_dict(cls, value: Mapping[str, Any] | None) -> StateRecord | None:
        """Read the result of `to_dict`; `None` if there is none, or if another release wrote it."""
        try:
            if value is None:
                return None
            marks = [(each[0], each[1]) for each in value["marks"]]
            owner = None if value["owner"] is None else StateOwner(*value["owner"])
            return cls(value["token"], marks, value["first"], value["held"], owner)
        except (KeyError, TypeError, IndexError):
            return None

    def to_dict(self) -> dict[str, Any]:
        """Return the record for a graph's state: names and digests, no content."""
        owner = self.owner
        return {
            "token": self.token,
            "marks": [list(mark) for mark in self.marks],
            "first": self.first,
            "held": self.ids,
            "owner": None if owner is None else [owner.user, owner.database, owner.agent_id, owner.thread_id],
        }

    def ids_of(self, ids: Collection[str]) -> list[str]:
        """Return which of these ids the state held.

        Args:
            ids: Message ids as they are stored.
        """
        size = _HELD_CHARACTERS
        known = {self.ids[place : place + size] for place in range(0, len(self.ids), size)}
        return [each for each in ids if _short(each) in known]

    def lacks_nothing(self, ids: Collection[str]) -> bool:
        """Return whether a state with these ids has everything that this one held."""
        size, present = _HELD_CHARACTERS, set(map(_short, ids))
        return all(self.ids[place : place + size] in present for place in range(0, len(self.ids), size))


def shorten_ids(ids: Collection[str]) -> str:
    """Return the short digests of ids, as a record stores them."""
    return "".join(map(_short, ids))


def _short(message_id: str) -> str:
    digest = hashlib.blake2b(message_id.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return b64encode(digest).decode()


def owner_digest(user_id: str) -> str:
    """Return a digest of the owner of a graph's state, as `memory_private.owner_digest` computes it."""
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass
class BranchUpdate:
    """A graph's state on its way to the database.

    Attributes:
        document: The argument of the SQL function.
        answer: The database's answer.
    """

    document: dict[str, Any]
    answer: Mapping[str, Any] = field(default_factory=dict)


class StateRecords:
    """The last stored states of the most recent conversations. Every method is thread-safe.

    Args:
        needs_owner: Whether to keep only records that name their owner, because the next call may be for another
            user.
    """

    def __init__(self, *, needs_owner: bool = False) -> None:
        self._needs_owner = needs_owner
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[ConversationKey, StateRecord] = OrderedDict()
        self.database: str | None = None
        """The database's identity, once it has reported it."""

    def get(self, key: ConversationKey) -> StateRecord | None:
        """Return what this process last stored in a conversation, if known."""
        with self._lock:
            return self._held.get(key)

    def put(self, key: ConversationKey, record: StateRecord) -> None:
        """Remember what was stored."""
        if record.owner is not None:
            self.database = record.owner.database
        if self._needs_owner and key.user_id is None:
            return
        with self._lock:
            self._held[key] = record
            self._held.move_to_end(key)
            while len(self._held) > _MAX_KNOWN:
                self._held.popitem(last=False)


def digests(messages: Sequence[BaseMessage]) -> list[str]:
    """Return a digest for each message, of it and all before it: role, content and application fields."""
    found: list[str] = []
    running = hashlib.blake2b(digest_size=16)
    for message in messages:
        # Plain text is not copied: a long history is digested before and after each model call.
        words = message.content if isinstance(message.content, str) else repr(message.content)
        fields = [getattr(message, name, None) for name in _BESIDE]
        said = f"{message.id}\0{message.type}\0{fields if any(fields) else ''}\0{len(words)}\0{words}"
        running.update(said.encode("utf-8", "surrogatepass"))
        found.append(running.hexdigest())
    return found


def known_count(messages: Sequence[BaseMessage], chain: Sequence[str], record: StateRecord | None) -> tuple[int, bool]:
    """Return how many messages are known to be stored unchanged, and whether nothing else was stored."""
    if record is None:
        return 0, False
    places: dict[str | None, int] = {message.id: place for place, message in enumerate(messages)}
    if any(message_id not in places for message_id, _ in record.marks):  # also for ids that are stored as others
        places |= {codec.row_id(message.id): place for place, message in enumerate(messages)}
    for back, (message_id, digest) in enumerate(reversed(record.marks)):
        place = places.get(message_id)
        if place is not None and chain[place] == digest:
            return place + 1, back == 0
    return 0, False


def turn_marks(messages: Sequence[BaseMessage], chain: Sequence[str], turn: int) -> list[tuple[str, str]]:
    """Return the positions to remember: where the current turn begins, and the end.

    Args:
        messages: All messages of the state.
        chain: Their digests.
        turn: How many messages come before the current turn.
    """
    places = sorted({place for place in (turn - 1, len(messages) - 1) if place >= 0})
    return [(codec.row_id(messages[place].id), chain[place]) for place in places]
