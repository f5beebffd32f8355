"""The shared workload: turns of a question and an answer, prepared in every form a contestant takes."""

from __future__ import annotations

import json
import random
from dataclasses import dataclass
from itertools import count, cycle
from typing import Any, Final
from uuid import UUID

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langchain_supabase_memory.language.messages import codec

FLOOR_CONVERSATION: Final = UUID(int=1)
_COLUMNS: Final = (
    "user_id", "conversation_id", "sequence", "message_id", "role", "text", "characters", "tokens",
    "payload",
)  # fmt: skip
_ROW: Final = f"({', '.join(['%s'] * len(_COLUMNS))})"
FLOOR_INSERT: Final = f"insert into bench.floor ({', '.join(_COLUMNS)}) values {_ROW}, {_ROW}".encode()
FLOOR_READ: Final = (
    b"select payload from bench.floor where user_id = %s and conversation_id = %s order by sequence desc limit 20"
)
FLOOR_RANGE: Final = (
    b"select payload from bench.floor where user_id = %s and conversation_id = %s and sequence >= %s order by sequence"
)
SQL_CONTEXT: Final = (
    b"select public.memory_context(p_thread_id => %s, p_user_id => %s, p_characters => %s, p_messages => %s)"
)
SQL_APPEND: Final = b"select public.memory_append(p_thread_id => %s, p_user_id => %s, p_messages => %s)"

_PROSE: Final = (
    "invoice shipment Tuesday refund Zürich naïve budget 42 (urgent) re-order “quoted” the of and a to in that it is "
    "customer price delivery between yesterday's color 3.50 € please see attached; thanks, Ωmega über garçon"
)
_WORDS: Final = _PROSE.split()
_random = random.Random(7)
_numbers = count()


def numbers() -> count[int]:
    """Return unused sequence numbers."""
    return _numbers


def text() -> str:
    """Return varied words, 80 to 800 characters in all."""
    length = _random.randint(80, 800)
    return " ".join(_random.choices(_WORDS, k=length // 3))[:length]


def short(number: int) -> BaseMessage:
    """Return a message of about 80 characters, fixed for a number: questions and answers alternate."""
    said = " ".join(random.Random(number).choices(_WORDS, k=12))
    return AIMessage(said) if number % 2 else HumanMessage(said)


def messages() -> list[BaseMessage]:
    """Return a question and an answer, without ids."""
    return [HumanMessage(text()), AIMessage(text())]


_stock: Final = [messages() for _ in range(64)]
_next: Final = cycle(_stock)


def said() -> list[BaseMessage]:
    """Return a question and an answer from a stock, as new objects: generating text is slower than storing it."""
    return [type(message)(content=message.content) for message in next(_next)]


@dataclass
class Turn:
    """A new turn.

    Attributes:
        messages: For `memory.append`.
        rows: For `memory_append` itself, and the same as JSON.
        floor_rows: For the floor, with all columns.
    """

    messages: list[BaseMessage]
    rows: list[dict[str, Any]]
    floor_rows: list[dict[str, Any]]

    @property
    def rows_json(self) -> str:
        return json.dumps(self.rows, ensure_ascii=False)

    @property
    def floor_values(self) -> list[Any]:
        return floor_values(self.floor_rows)


def floor_values(rows: list[dict[str, Any]]) -> list[Any]:
    """Return the values of `FLOOR_INSERT`."""
    flat = [{**row, "payload": json.dumps(row["payload"], ensure_ascii=False)} for row in rows]
    return [row[column] for row in flat for column in _COLUMNS]


def turn(conversation: UUID = FLOOR_CONVERSATION) -> Turn:
    said = messages()
    stored = [message.model_copy(update={"id": f"lc_{UUID(int=_random.getrandbits(128))}"}) for message in said]
    rows = [codec.to_row(message) for message in stored]
    floor_rows = [
        {
            "user_id": "bench", "conversation_id": str(conversation), "sequence": next(_numbers),
            "message_id": row["id"],
            **{name: row[name] for name in ("role", "text", "characters", "tokens", "payload")},
        }
        for row in rows
    ]  # fmt: skip
    return Turn(said, rows, floor_rows)


@dataclass(frozen=True)
class Ready:
    """A new turn in every form, so that no preparation is timed."""

    messages: list[BaseMessage]
    rows: list[dict[str, Any]]
    rows_json: str
    floor_rows: list[dict[str, Any]]
    floor_values: list[Any]


def ready() -> Ready:
    made = turn()
    return Ready(made.messages, made.rows, made.rows_json, made.floor_rows, made.floor_values)
