"""A graph's branch: what its state holds, told apart from what is stored without sending all of it.

Only a state that once held a message can take it away. What a state held is kept in its record, where the graph keeps
one, and in the checkpoints before it. What a run leaves that names the checkpoint it goes on from, the database knows.
"""

from __future__ import annotations

import hashlib
import threading
from base64 import b64encode
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from langchain_supabase_memory import fork

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from langchain_core.messages import BaseMessage

    from langchain_supabase_memory.values import ConversationKey

OURS: Final = "lc_supabase_memory"
"""How the ids begin of the messages that this package puts into a prompt."""

_CHECKPOINTER: Final = "__pregel_checkpointer"
"""LangGraph's key for the run's checkpointer; written out, so that `langgraph` is not imported for it."""

_DURABILITY: Final = "__pregel_durability"
"""LangGraph's key for when checkpoints are written."""

_BESIDE: Final = ("name", "additional_kwargs", "tool_calls", "invalid_tool_calls", "tool_call_id", "status")
"""What counts of a message beside its words."""

_MOST_KNOWN: Final = 10_000
"""Of how many conversations it is remembered what was stored last."""

_HELD_CHARACTERS: Final = 8
"""How many characters of a record stand for one message: 48 bits of a digest."""


@dataclass(frozen=True)
class Lineage:
    """Where a graph's state comes from.

    Attributes:
        checkpoint_id: The run names the checkpoint that it goes on from: what lies beyond that is left.
        saver: The run's checkpointer; `None` without one.
        place: Names the state's present checkpoint for it: `thread_id`, `checkpoint_ns` and `checkpoint_id`.
        is_written: Whether checkpoints are written while a run goes on, and not only at its end.
        run: The run of LangGraph's server; `None` where no server runs the graph.
    """

    checkpoint_id: bool = False
    saver: Any = None
    place: Mapping[str, str] | None = None
    is_written: bool = True
    run: str | None = None

    @property
    def task(self) -> str:
        """The task whose graph this is, unlike any other; empty for a graph that is nobody's task."""
        namespace = "" if self.place is None else self.place["checkpoint_ns"]
        return namespace if ":" in namespace.rpartition("|")[2] else ""


ALONE: Final = Lineage()
"""Of a list of messages that is no graph's state."""


def lineage(config: Mapping[str, Any] | None) -> Lineage:
    """Where the state of a run comes from.

    Args:
        config: The configuration of the node that runs.
    """
    found = config or {}
    configurable: Mapping[str, Any] = found.get("configurable") or {}
    # LangGraph moves the name of a checkpoint from the ids to the metadata.
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
    return Lineage(named, configurable.get(_CHECKPOINTER), place, configurable.get(_DURABILITY) != "exit", run)


@dataclass(frozen=True)
class StateOwner:
    """Whose state a record is about; a digest, and no name.

    Attributes:
        user: A digest of the user's id.
        database: What tells the database from others.
        agent_id: The agent.
        thread_id: The thread.
    """

    user: str
    database: str
    agent_id: str
    thread_id: str

    @classmethod
    def from_answer(cls, key: ConversationKey, answer: Mapping[str, Any]) -> StateOwner | None:
        """As the database answered; `None` if it was not asked."""
        if "owner" not in answer:
            return None
        return cls(answer["owner"], answer["database"], key.agent_id, key.thread_id)


@dataclass(frozen=True)
class StateRecord:
    """What was stored last.

    Attributes:
        token: Names it in the database.
        marks: Places in it: the id of a message, and the digest of all messages up to that one. The last is its end.
        first: The id of the first message that counts, where those before it are older than what is stored.
        ids: What stands for the ids of its messages.
        owner: Whose it is; `None` as long as the database has not said.
    """

    token: str
    marks: list[tuple[str, str]]
    first: str | None = None
    ids: str = ""
    owner: StateOwner | None = None

    @classmethod
    def from_dict(cls, value: Mapping[str, Any] | None) -> StateRecord | None:
        """What `to_dict` made; `None` of nothing, and of what another release made."""
        try:
            if value is None:
                return None
            marks = [(each[0], each[1]) for each in value["marks"]]
            owner = None if value["owner"] is None else StateOwner(*value["owner"])
            return cls(value["token"], marks, value["first"], value["held"], owner)
        except (KeyError, TypeError, IndexError):
            return None

    def to_dict(self) -> dict[str, Any]:
        """For a graph's state: names and digests, no content."""
        owner = self.owner
        return {
            "token": self.token,
            "marks": [list(mark) for mark in self.marks],
            "first": self.first,
            "held": self.ids,
            "owner": None if owner is None else [owner.user, owner.database, owner.agent_id, owner.thread_id],
        }

    def ids_of(self, ids: Collection[str]) -> list[str]:
        """Those of some ids that the state held.

        Args:
            ids: Ids of messages, as they are stored.
        """
        size = _HELD_CHARACTERS
        known = {self.ids[place : place + size] for place in range(0, len(self.ids), size)}
        return [each for each in ids if _short(each) in known]

    def lacks_nothing(self, ids: Collection[str]) -> bool:
        """Whether a state with these ids has everything that this one held."""
        size, present = _HELD_CHARACTERS, set(map(_short, ids))
        return all(self.ids[place : place + size] in present for place in range(0, len(self.ids), size))


def shorten_ids(ids: Collection[str]) -> str:
    """What stands for ids in a record."""
    return "".join(map(_short, ids))


def _short(message_id: str) -> str:
    digest = hashlib.blake2b(message_id.encode("utf-8", "surrogatepass"), digest_size=6).digest()
    return b64encode(digest).decode()


def owner_digest(user_id: str) -> str:
    """Whose a graph's state is, without the name; as `memory_private.owner_digest` says it."""
    return hashlib.sha256(user_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


@dataclass
class BranchUpdate:
    """A graph's state on its way to the database.

    Attributes:
        document: What the SQL function takes of it.
        answer: What the database answered.
    """

    document: dict[str, Any]
    answer: Mapping[str, Any] = field(default_factory=dict)


class StateRecords:
    """What was stored last in the newest conversations. Every method is safe to call from any thread.

    Args:
        needs_owner: Whether only what names its owner is kept, as the next call may be another user's.
    """

    def __init__(self, *, needs_owner: bool = False) -> None:
        self._needs_owner = needs_owner
        fork.run_in_each_process(self._begin)

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._held: OrderedDict[ConversationKey, StateRecord] = OrderedDict()
        self.database: str | None = None
        """The database, as soon as it has said which it is."""

    def get(self, key: ConversationKey) -> StateRecord | None:
        """What was stored last in a conversation by this process, if that is known."""
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


def known_count(messages: Sequence[BaseMessage], chain: Sequence[str], record: StateRecord | None) -> tuple[int, bool]:
    """How many of the messages are stored as they are, as far as is known, and whether nothing else was stored."""
    if record is None:
        return 0, False
    places = {message.id: place for place, message in enumerate(messages)}
    for back, (message_id, digest) in enumerate(reversed(record.marks)):
        place = places.get(message_id)
        if place is not None and chain[place] == digest:
            return place + 1, back == 0
    return 0, False


def turn_marks(messages: Sequence[BaseMessage], chain: Sequence[str], turn: int) -> list[tuple[str, str]]:
    """The places to remember: where the current turn begins, and the end.

    Args:
        messages: All that the state holds.
        chain: Their digests.
        turn: How many of them come before the current turn.
    """
    places = sorted({place for place in (turn - 1, len(messages) - 1) if place >= 0})
    return [(str(messages[place].id), chain[place]) for place in places]
