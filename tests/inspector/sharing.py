"""A space with people in it, for the inspector's tests: a manager, a contributor, a reader, and what they said."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

from langchain_core.messages import HumanMessage

from langchain_supabase_memory import SupabaseMemory

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


async def studio(server: SupabaseMemory, name: str = "Studio") -> Studio:
    """Create a space with a conversation and an item on its board."""
    number = next(_numbers)
    maya, ben, eve, stranger = (f"{each}-{number}" for each in ("maya", "ben", "eve", "stranger"))
    made = await server.for_user(maya).spaces.acreate(name, about="Who fires the kiln.")
    space = server.for_user(maya).space(made.space_id)
    for user, role in ((ben, "contributor"), (eve, "reader")):
        invitation = await space.ainvite(role)  # type: ignore[arg-type]
        await server.for_user(user).spaces.ajoin(str(invitation.token))
    await space.memory.conversation("plan").aappend([HumanMessage("The kiln is at cone six.", id="plan")])
    diary = server.for_user(ben).conversation("diary")
    await diary.aappend([HumanMessage(f"Day {day} was long.", id=f"d{day}") for day in range(3)])
    await diary.aappend([HumanMessage("I am tired. We fire the kiln on Friday.", id="m1")])
    item = await diary.acontribute("m1", quote="We fire the kiln on Friday.", kind="action", to=made.space_id)
    return Studio(made.space_id, maya, ben, eve, stranger, item.item_id)
