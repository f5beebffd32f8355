"""A sweep: each argument of each verb of the handles refuses values of a wrong type itself, by name, without content."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from uuid import uuid4

import pytest
from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.memory import handle
from tests.each_case import each_case
from tests.services.postgres import Cluster


class Wrong:
    """What no verb takes. Its words are content."""

    def __repr__(self) -> str:
        return "canary"


NOW: Final = datetime.now(UTC)
FITTING: Final[dict[str, Any]] = {
    "message_id": "m1", "item": str(uuid4()), "chunk": str(uuid4()), "topic": str(uuid4()), "into": str(uuid4()),
    "kind": "fact", "to": f"space:{uuid4()}", "role": "reader", "purpose": "profile", "messages": [HumanMessage("x")],
    "start": NOW - timedelta(days=1), "end": NOW, "stage": "off", "allowed": True, "number": 0,
    "message_ids": ["m1"], "answer": 1, "title": "x",
}  # fmt: skip
"""What is passed for the other arguments; a text else."""

WITH: Final[dict[str, dict[str, Any]]] = {
    "board.edit": {"text": "x"},
    "privacy.rate": {"importance": 0.5},
    "privacy.rate(useful)": {"importance": None},
}
"""More that a verb needs to come to the argument."""

NEVER: Final = {"close", "for_user", "for_token", "embedded", "from_url", "from_client", "from_conn_string", "connect"}
"""What makes and closes a memory: `test_misuse.py` has its mistakes."""

NEEDS: Final = {"chunks.reembed": "an embedder", "work.users": "a memory of all users"}
"""What a verb asks of the memory before its arguments."""


def handles(memory: SupabaseMemory, thread: str) -> Iterator[tuple[str, Any]]:
    """Each handle with its path, a space's included."""
    conversation = memory.conversation(thread)
    yield "", memory
    yield "conversation.", conversation
    for owner in (memory, conversation):
        for name, value in inspect.getmembers_static(type(owner), lambda each: isinstance(each, property)):
            part = None if name.startswith("_") else value.fget(owner)
            if type(part).__module__.startswith(handle.__name__.rpartition(".")[0]):
                yield f"{'conversation.' if owner is conversation else ''}{name}.", part
    yield "space.", memory.space(f"space:{uuid4()}")


def arguments() -> list[tuple[str, str, str]]:
    """Each verb with one of its arguments and the type of that."""
    memory = SupabaseMemory.from_conn_string("postgresql://localhost/none", user_id="maya")
    return [
        (f"{path}{name}", parameter.name, str(parameter.annotation))
        for path, owner in handles(memory, "t")
        for name, verb in inspect.getmembers(owner, inspect.ismethod)
        if not name.startswith("_") and name not in NEVER and hasattr(owner, f"a{name}")
        for parameter in inspect.signature(verb).parameters.values()
    ]


ARGUMENTS: Final = arguments()


@pytest.fixture(scope="module")
def verbs(shared: str, cluster: Cluster) -> Iterator[dict[str, Callable[..., Any]]]:
    """Each verb of a memory with a conversation."""
    with SupabaseMemory.from_conn_string(cluster.conn_string(shared), user_id="maya") as memory:
        memory.conversation("t").append([HumanMessage("My kiln shows E-47", id="m1")])
        yield {
            f"{path}{name}": verb
            for path, owner in handles(memory, "t")
            for name, verb in inspect.getmembers(owner, inspect.ismethod)
        }


def error_of(
    verbs: dict[str, Callable[..., Any]], verb: str, argument: str, value: object
) -> SupabaseMemoryError | None:
    """What is raised if this is passed; every other error than ours is one of the test."""
    parameters = inspect.signature(verbs[verb]).parameters.values()
    more = {**WITH.get(verb.removeprefix("conversation."), {}), **WITH.get(f"{verb}({argument})", {})}
    passed = {
        **{each.name: FITTING.get(each.name, "x") for each in parameters if each.default is each.empty},
        **more,
        argument: value,
    }
    try:
        verbs[verb](**passed)
    except SupabaseMemoryError as error:
        return error
    return None


@each_case("argument", [f"{verb}({name})" for verb, name, _ in ARGUMENTS])
def test_a_value_of_a_wrong_type_is_refused_by_name(verbs: dict[str, Callable[..., Any]], argument: str) -> None:
    verb, _, rest = argument.partition("(")
    name = rest[:-1]
    kind = next(kind for each, other, kind in ARGUMENTS if (each, other) == (verb, name))
    values: list[Any] = [Wrong(), b"x", [Wrong()]] + ([] if "float" in kind else [5.5, float("nan")])
    for value in values:
        error = error_of(verbs, verb, name, value)
        assert error is not None, type(value)
        assert "canary" not in str(error)
        if verb.removeprefix("conversation.") not in NEEDS:
            assert name in str(error), error
            assert error.code is None, error


@each_case("argument", [f"{verb}({name})" for verb, name, _ in ARGUMENTS])
def test_what_cannot_be_sent_is_no_error_of_the_server(verbs: dict[str, Callable[..., Any]], argument: str) -> None:
    verb, _, name = argument.removesuffix(")").partition("(")
    for value in (10**30, -(2**40), "\ud800", "a\0b", "x"):
        error = error_of(verbs, verb, name, value)
        assert error is None or error.code is None or error.code.startswith("PT"), (
            value if isinstance(value, int) else ascii(value),
            error,
        )
