"""Write chunks of many users in bulk: rows, words and vectors in the state after indexing.

Vectors form clusters, as those of real text do: a conversation has a few topics, and stays with each for a while. Words
follow Zipf's law.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import numpy as np
import psycopg

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from numpy.typing import NDArray

    from benchmarks.services import Site

    Halves = NDArray[np.float16]

LENGTH: Final = 100
"""The default number of chunks in a conversation."""

MODEL: Final = "bench"
MANY: Final = 0
MOST: Final = 1
"""The measured users: one with a twentieth of the table, and one with half of it."""

_TOPICS: Final = 2000
_PER_CONVERSATION: Final = 5
_STAY: Final = 10
_NOISE: Final = 0.8
_WORDS: Final = 12
_VOCABULARY: Final = 30_000
_DATE: Final = ("2026", "novemb")
_STOPS: Final = 20
"""The number of most frequent words, which text search drops as stop words."""
_CONSONANTS: Final = "bcdfghjklmnprstvz"
_VOWELS: Final = "aou"
_AT_ONCE: Final = 50
_IN_A_ROW: Final = 16
"""The maximum length of a posting list row."""
_HEADER: Final = b"PGCOPY\n\xff\r\n\x00" + bytes(8)
_CHUNKS: Final = """
copy memory.working_memory_chunks (
  user_id, conversation_id, place, part, id, from_sequence, to_sequence, message_ids, stretch, type, role, said_at,
  content, characters, tokens, lexemes, terms, search_length, importance, cohesion) from stdin
"""
_EMBEDDINGS: Final = """
copy memory.chunk_embeddings (user_id, conversation_id, place, part, model, dimensions, embedding)
from stdin (format binary)
"""


@dataclass(frozen=True)
class Asked:
    """A question: its words and its vector."""

    text: str
    vector: list[float]


@dataclass
class Corpus:
    """The chunks of a table of a given size.

    Attributes:
        site: The project to write to.
        size: The final number of chunks.
        length: The number of chunks in a conversation.
        filled: The number of chunks so far.
    """

    site: Site
    size: int
    length: int = LENGTH
    filled: int = 0
    _vectors: Halves = field(default_factory=lambda: np.zeros((0, 0), np.float16))
    _words: NDArray[np.int64] = field(init=False)
    _ids: list[UUID] = field(init=False)
    _fresh: np.random.Generator = field(default_factory=lambda: np.random.default_rng(13))

    def __post_init__(self) -> None:
        random = Random(7)
        self._ids = [UUID(int=random.getrandbits(128), version=4) for _ in range(self.size // self.length)]
        chances = 1 / (np.arange(_VOCABULARY) + _STOPS)
        self._words = np.random.default_rng(8).choice(_VOCABULARY, (self.size, _WORDS), p=chances / chances.sum())

    def user(self, conversation: int) -> int:
        """Return a conversation's owner: one has a twentieth of the table, one half of it, the others ten each."""
        many, most = len(self._ids) // 20, len(self._ids) // 2
        if conversation < many:
            return MANY
        return MOST if conversation < many + most else MOST + 1 + (conversation - many - most) // 10

    def rows(self, user: int) -> range:
        """Return the chunks of one of the measured users."""
        many, most = self.size // 20, self.size // 2
        return range(many) if user == MANY else range(many, many + most)

    def key(self, row: int) -> UUID:
        """Return the id of a chunk."""
        return UUID(int=row)

    def conversation(self, number: int) -> UUID:
        return self._ids[number]

    def fill(self, until: int) -> None:
        """Write the chunks up to a number, without vectors."""
        with self._connected() as connection, connection.cursor() as cursor:
            for first, last in self._slabs(self.filled, until):
                conversations = range(first // self.length, last // self.length)
                with cursor.copy(
                    b"copy memory.conversations (user_id, id, thread_id, next_sequence, message_count, indexed_through,"
                    b" chunk_count, language) from stdin"
                ) as copy:
                    for number in conversations:
                        copy.write(
                            f"{user_id(self.user(number))}\t{self._ids[number]}\t{thread(number)}\t{self.length}\t{self.length}"
                            f"\t{self.length - 1}\t{self.length}\tenglish\n"
                        )
                with cursor.copy(_CHUNKS.encode()) as copy:
                    copy.write("".join(self._chunk(row) for row in _mixed(first, last, self.length)))
                with cursor.copy(
                    b"copy memory.chunk_postings (user_id, conversation_id, lexeme, first, postings) from stdin"
                ) as copy:
                    copy.write("".join(line for number in conversations for line in self._postings(number)))
        self.filled = until

    def embed(self, width: int, first: int, until: int) -> None:
        """Write the vectors of a range of chunks."""
        kept = self.rows(MOST).stop
        if self._vectors.shape[1] != width:
            self._vectors = np.zeros((kept, width), np.float16)
        centers = _unit(np.random.default_rng(9).standard_normal((_TOPICS, width), np.float32))
        halfvec = np.dtype([("width", ">i2"), ("unused", ">i2"), ("numbers", ">f2", (width,))])
        columns = {
            "user": np.dtype("S10"), "conversation": np.dtype("V16"), "place": np.dtype(">i8"), "part": np.dtype(">i4"),
            "model": np.dtype(f"S{len(MODEL)}"), "dimensions": np.dtype(">i4"), "embedding": halfvec,
        }  # fmt: skip
        # Postgres' binary format: the number of columns, then each with its length.
        row = np.dtype(
            [
                ("columns", ">i2"),
                *(each for name, kind in columns.items() for each in ((f"{name}#", ">i4"), (name, kind))),
            ]
        )
        with (
            self._connected() as connection,
            connection.cursor() as cursor,
            cursor.copy(_EMBEDDINGS.encode()) as copy,
        ):
            copy.write(_HEADER)
            for start, end in self._slabs(first, until):
                vectors = self._made(centers, start, end)
                if start < kept:
                    self._vectors[start : min(end, kept)] = vectors[: kept - start]
                order = np.array(_mixed(start, end, self.length))
                rows = np.zeros(end - start, row)
                rows["columns"] = len(columns)
                for name, kind in columns.items():
                    rows[f"{name}#"] = kind.itemsize
                rows["user"] = [user_id(self.user(each // self.length)).encode() for each in order]
                rows["conversation"] = [np.void(self._ids[each // self.length].bytes) for each in order]
                rows["place"], rows["part"] = order % self.length, 1
                rows["model"], rows["dimensions"] = MODEL.encode(), width
                rows["embedding"]["width"], rows["embedding"]["numbers"] = width, vectors[order - start]
                copy.write(rows.tobytes())
            copy.write(b"\xff\xff")

    def questions(self, rows: range, number: int) -> list[Asked]:
        """Return questions about random chunks of a range: four of a chunk's words, and a vector close to its own."""
        random = np.random.default_rng(10)
        made = []
        for row in random.choice(np.array(rows), number, replace=number > len(rows)).tolist():
            words, vector = self._near(np.random.default_rng((14, row)), row, 0.5)
            told = list(dict.fromkeys(words))[:4]
            made.append(Asked(f"what was it about {told[0]} and the {' '.join(told[1:])}", vector))
        return made

    def fresh(self, number: int) -> list[tuple[list[str], list[float]]]:
        """Return the words and vectors of chunks that do not exist yet."""
        return [self._near(self._fresh, int(self._fresh.integers(len(self._vectors))), _NOISE) for _ in range(number)]

    def nearest(self, rows: range, questions: Sequence[Asked], limit: int) -> list[set[UUID]]:
        """Return the chunks whose vectors are nearest to each question, by brute force."""
        asked = np.array([each.vector for each in questions], np.float32).T
        slabs = [
            self._vectors[start:end].astype(np.float32) @ asked for start, end in self._slabs(rows.start, rows.stop)
        ]
        best = np.argpartition(-np.concatenate(slabs), limit, axis=0)[:limit].T
        return [{self.key(rows.start + each) for each in numbers} for numbers in best.tolist()]

    def _near(self, random: np.random.Generator, row: int, noise: float) -> tuple[list[str], list[float]]:
        near = self._vectors[row].astype(np.float32) + _noise(random, self._vectors.shape[1:], noise)
        vector = near / np.linalg.norm(near)
        return [word(each) for each in self._words[row].tolist()], [round(float(each), 6) for each in vector]

    def _made(self, centers: NDArray[np.float32], first: int, last: int) -> Halves:
        random = np.random.default_rng((11, first))
        topics = random.integers(_TOPICS, size=((last - first) // self.length, _PER_CONVERSATION))
        stays = random.integers(_PER_CONVERSATION, size=((last - first) // self.length, self.length // _STAY))
        chosen = np.repeat(np.take_along_axis(topics, stays, axis=1), _STAY, axis=1).reshape(-1)
        return _unit(centers[chosen] + _noise(random, (last - first, centers.shape[1]), _NOISE)).astype(np.float16)

    def _chunk(self, row: int) -> str:
        conversation, place = divmod(row, self.length)
        words = [word(each) for each in self._words[row].tolist()]
        content = f"I was at the {' and the '.join(words)}"
        said_at = f"2026-11-{1 + place // 24:02}T{place % 24:02}:00:00Z"
        role = "assistant" if place % 2 else "user"
        return (
            f"{user_id(self.user(conversation))}\t{self._ids[conversation]}\t{place}\t1\t{self.key(row)}\t{place}\t{place}"
            f"\t{{m-{place}}}\t{place // _STAY * _STAY}\tdialogue\t{role}\t{said_at}\t{content}\t{len(content)}"
            f"\t{len(content) // 4}\t{_WORDS + len(_DATE)}\t{len({*words, *_DATE})}"
            f"\t{2.5 * (_WORDS + len(_DATE))}\t0.3\t0.6\n"  # those of two on each side count in part
        )

    def _postings(self, conversation: int) -> Iterator[str]:
        start = f"{user_id(self.user(conversation))}\t{self._ids[conversation]}"
        lists: dict[str, list[tuple[int, int]]] = {each: [(place, 1) for place in range(self.length)] for each in _DATE}
        for place, words in enumerate(self._words[conversation * self.length :][: self.length].tolist()):
            for each, times in Counter(words).items():
                lists.setdefault(word(each), []).append((place, times))
        for lexeme, found in lists.items():
            for row in range(0, len(found), _IN_A_ROW):
                first = found[row][0]
                listed = [(place - first) << 45 | 1 << 15 | times for place, times in found[row : row + _IN_A_ROW]]
                yield f"{start}\t{lexeme}\t{first}\t{{{','.join(map(str, listed))}}}\n"

    def _slabs(self, first: int, until: int) -> Iterator[tuple[int, int]]:
        for start in range(first, until, _AT_ONCE * self.length):
            yield start, min(start + _AT_ONCE * self.length, until)

    def _connected(self) -> psycopg.Connection[Any]:
        connection = psycopg.connect(
            self.site.cluster.conn_string(self.site.database, "supabase_admin"), autocommit=True
        )
        connection.execute("set session_replication_role = replica")  # skips foreign key checks
        return connection


def user_id(user: int) -> str:
    return f"user-{user:05}"


def thread(conversation: int) -> str:
    return f"recall-{conversation}"


def word(number: int) -> str:
    """Return a word that text search does not change."""
    syllables = len(_CONSONANTS) * len(_VOWELS)
    digits = [number // syllables**2, number // syllables % syllables, number % syllables]
    return "".join(_CONSONANTS[each // len(_VOWELS)] + _VOWELS[each % len(_VOWELS)] for each in digits)


def _mixed(first: int, last: int, length: int) -> list[int]:
    """Return chunks in realistic insertion order: conversations alternate, a few chunks of each at a time."""
    turns = [row // length for row in range(first, last, _STAY)]
    Random(12).shuffle(turns)
    following = {conversation: count(conversation * length, _STAY) for conversation in turns}
    starts = [next(following[conversation]) for conversation in turns]
    return [row for start in starts for row in range(start, start + _STAY)]


def _noise(random: np.random.Generator, shape: tuple[int, ...], size: float) -> NDArray[np.float32]:
    return random.standard_normal(shape, np.float32) * np.float32(size / np.sqrt(shape[-1]))


def _unit(vectors: NDArray[np.float32]) -> NDArray[np.float32]:
    made: NDArray[np.float32] = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    return made
