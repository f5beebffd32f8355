"""A space with people in it, for the inspector's tests: a manager, a contributor, a reader, and what they said."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from langchain_core.messages import HumanMessage

from tests.inspector.visiting import memory_of

_numbers = count()


@dataclass(frozen=True)
class Studio:
    """A space.

    Attributes:
        space_id: Its id.
        maya: The user who manages it.
        ben: A contributor, who has quoted from a diary.
        eve: A reader.
        stranger: Somebody who is not in it.
        item: The id of Ben's item on its board.
    """

    space_id: str
    maya: str
    ben: str
    eve: str
    stranger: str
    item: str


def studio(conn_string: str, name: str = "Studio") -> Studio:
    """Create a space with a conversation and an item on its board."""
    number = next(_numbers)
    maya, ben, eve, stranger = (f"{each}-{number}" for each in ("maya", "ben", "eve", "stranger"))
    with memory_of(conn_string) as server:
        made = server.for_user(maya).spaces.create(name, about="Who fires the kiln.")
        space = server.for_user(maya).space(made.space_id)
        server.for_user(ben).spaces.join(space.invite("contributor").token)
        server.for_user(eve).spaces.join(space.invite("reader").token)
        space.memory.conversation("plan").append([HumanMessage("The kiln is at cone six.", id="plan")])
        diary = server.for_user(ben).conversation("diary")
        diary.append([HumanMessage(f"Day {day} was long.", id=f"d{day}") for day in range(3)])
        diary.append([HumanMessage("I am tired. We fire the kiln on Friday.", id="m1")])
        item = diary.contribute("m1", quote="We fire the kiln on Friday.", kind="action", to=made.space_id)
    return Studio(made.space_id, maya, ben, eve, stranger, item.item_id)
