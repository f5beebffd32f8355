"""Spaces by the package's handles, for a server that names its users, and for users with tokens by both doors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import timedelta
from itertools import count
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage

from langchain_supabase_memory import Retention, SupabaseMemory, SupabaseMemoryMiddleware, Worker
from langchain_supabase_memory.errors import (
    ConfigurationError,
    InvalidInputError,
    MigrationConflictError,
    NotFoundError,
    PermissionDeniedError,
)
from tests.chat_models import says
from tests.services.data_api import DataApi, token, verified

if TYPE_CHECKING:
    from tests.services.postgres import Cluster

_numbers = count()


@dataclass(frozen=True)
class Door:
    """A way to reach a database with spaces.

    Attributes:
        server: A memory with a server's rights.
        of: Returns a user's memory.
    """

    server: SupabaseMemory
    of: Callable[[str], SupabaseMemory]


@pytest.fixture(params=["server", "claims", "token"])
def door(request: pytest.FixtureRequest, cluster: Cluster, shared: str) -> Iterator[Door]:
    with SupabaseMemory.from_conn_string(cluster.conn_string(shared)) as server:
        if request.param == "server":
            yield Door(server, server.for_user)
        elif request.param == "claims":
            yield Door(server, lambda user: server.for_token(verified(token("authenticated", user))))
        else:
            api: DataApi = request.getfixturevalue("shared_api")
            with SupabaseMemory.from_url(api.url, token("anon"), rest_path="") as anonymous:
                yield Door(server, lambda user: anonymous.for_token(token("authenticated", user)))


@pytest.fixture
def people() -> tuple[str, str, str]:
    """Three users whom nobody knows yet."""
    number = next(_numbers)
    return f"maya-{number}", f"ben-{number}", f"eve-{number}"


def texts(memory: SupabaseMemory, thread_id: str = "plan") -> list[tuple[str | None, str]]:
    rows = memory.conversation(thread_id).read()
    return [(each.author_id, str(each.message.text)) for each in rows if each.message is not None]


def test_people_share_what_a_space_owns_and_each_message_has_its_author(
    door: Door, people: tuple[str, str, str]
) -> None:
    maya, ben, _ = people
    made = door.of(maya).spaces.create("Studio", about="The kiln and the shop.")
    assert (made.name, made.role) == ("Studio", "manager")
    mine = door.of(maya).space(made.space_id)
    invitation = mine.invite("contributor")
    assert invitation.token not in repr(invitation)
    joined = door.of(ben).spaces.join(invitation.token)
    assert (joined.space_id, joined.role) == (made.space_id, "contributor")

    theirs = door.of(ben).space(made.space_id)
    mine.memory.conversation("plan").append([HumanMessage("The kiln is at cone six.")])
    theirs.memory.conversation("plan").append([HumanMessage("Then I fire on Friday."), AIMessage("Noted.")])
    assert texts(mine.memory) == texts(theirs.memory) == [
        (maya, "The kiln is at cone six."), (ben, "Then I fire on Friday."), (ben, "Noted.")
    ]  # fmt: skip
    assert [each.name for each in door.of(ben).spaces.list()] == ["Studio"]
    assert not door.of(ben).conversation("plan").read(), "nothing of it is in a member's own conversations"
    assert [(each.user_id, each.role) for each in theirs.info().members] == [(maya, "manager"), (ben, "contributor")]
    assert theirs.info().invitations == ()


def test_who_is_not_in_a_space_reaches_nothing_of_it(door: Door, people: tuple[str, str, str]) -> None:
    maya, _, eve = people
    made = door.of(maya).spaces.create("Studio")
    door.of(maya).space(made.space_id).memory.conversation("plan").append([HumanMessage("The kiln is at cone six.")])
    outside = door.of(eve).space(made.space_id)
    for act in (outside.info, outside.leave, outside.invite, outside.forget, lambda: outside.set_member(maya, None)):
        with pytest.raises(NotFoundError):
            act()
    if not outside._services.member:  # a server reads what it names: whether Eve may is for the server to ask
        with pytest.raises(NotFoundError):
            outside.memory.conversation("plan").read()
        with pytest.raises(NotFoundError):
            outside.memory.conversation("plan").append([HumanMessage("I was here.")])
        with pytest.raises(NotFoundError):
            outside.memory.recall("kiln")
    assert len(texts(door.of(maya).space(made.space_id).memory)) == 1


def test_roles_say_who_may_do_what_from_the_next_call_on(door: Door, people: tuple[str, str, str]) -> None:
    maya, ben, eve = people
    space = door.of(maya).space(door.of(maya).spaces.create("Studio").space_id)
    invitation = space.invite(uses=2)
    for each in (ben, eve):
        door.of(each).spaces.join(invitation.token)
    bens = door.of(ben).space(space.space_id)
    with pytest.raises(PermissionDeniedError):
        bens.invite()
    with pytest.raises(PermissionDeniedError):
        bens.set_member(eve, "contributor")
    space.set_member(ben, "contributor")
    bens.memory.conversation("plan").append([HumanMessage("Mine.", id="mine")])
    space.set_member(ben, "manager")
    space.leave()
    with pytest.raises(NotFoundError):
        space.info()
    bens.set_member(eve, None)
    assert [each.user_id for each in bens.info().members] == [ben]
    with pytest.raises(InvalidInputError, match="manager"):
        bens.leave()
    assert bens.forget(dry_run=True).members == 1
    receipt = bens.forget()
    assert (receipt.messages, receipt.members) == (1, 1)
    assert door.of(ben).spaces.list() == []


def test_a_manager_changes_the_name_and_what_is_kept(door: Door, people: tuple[str, str, str]) -> None:
    maya, ben, _ = people
    space = door.of(maya).space(door.of(maya).spaces.create("Studio", keep=Retention(max_messages=5)).space_id)
    talk = space.memory.conversation("plan")
    for number in range(8):
        talk.append([HumanMessage(f"Message {number}")])
    assert talk.count() == 5
    space.update(name="The kiln", about="Who fires it.", keep=Retention())
    info = space.info()
    assert (info.name, info.about) == ("The kiln", "Who fires it.")
    talk.append([HumanMessage(f"Message {number}") for number in range(9)])
    assert talk.count() == 14
    door.of(ben).spaces.join(space.invite("contributor").token)
    with pytest.raises(PermissionDeniedError):
        door.of(ben).space(space.space_id).update(name="Mine")
    with pytest.raises(InvalidInputError):
        space.update(name=" ")


def test_an_invitation_is_shown_once_and_can_be_taken_back(door: Door, people: tuple[str, str, str]) -> None:
    maya, ben, eve = people
    space = door.of(maya).space(door.of(maya).spaces.create("Studio").space_id)
    invitation = space.invite(expires=timedelta(hours=1))
    assert [(each.role, each.uses, each.created_by) for each in space.info().invitations] == [("reader", 1, maya)]
    door.of(ben).spaces.join(invitation.token)
    for used in (invitation.token, "nonsense", "a.b"):
        with pytest.raises(NotFoundError):
            door.of(eve).spaces.join(used)
    other = space.invite()
    space.withdraw_invitations()
    with pytest.raises(NotFoundError):
        door.of(eve).spaces.join(str(other.token))


@pytest.mark.parametrize("color", ["sync", "async"])
async def test_an_agent_of_a_server_answers_in_a_space(
    cluster: Cluster, shared: str, people: tuple[str, str, str], color: str
) -> None:
    maya, ben, _ = people
    with SupabaseMemory.from_conn_string(cluster.conn_string(shared)) as server:
        space_id = server.for_user(maya).spaces.create("Studio").space_id
        space = server.for_user(maya).space(space_id)
        invitation = space.invite("contributor")
        server.for_user(ben).spaces.join(invitation.token)
        for user, text in ((maya, "Remember cone six."), (ben, "What was it?")):
            chat = says("Cone six.")
            memory = server.for_user(user).space(space_id).memory
            agent = create_agent(chat, [], middleware=[SupabaseMemoryMiddleware(memory)])
            given: Any = {"messages": [HumanMessage(text)]}
            settings: Any = {"configurable": {"thread_id": "plan"}}
            _ = agent.invoke(given, settings) if color == "sync" else await agent.ainvoke(given, settings)
        assert "Remember cone six." in str(chat.shown[-1])
        assert [author for author, _ in texts(space.memory)] == [maya, maya, ben, ben]
        await Worker(server).drain()
        assert space.memory.conversation("plan").chunks.list()
        assert space.memory.recall("cone six").chunks
        await server.aclose()


def test_ids_and_arguments_that_cannot_be_right_say_what_to_do(door: Door, people: tuple[str, str, str]) -> None:
    memory = door.of(people[0])
    with pytest.raises(InvalidInputError, match=r"memory\.spaces\.list"):
        memory.space("Studio")
    with pytest.raises(NotFoundError):
        memory.space("space:00000000-0000-4000-8000-000000000000").info()
    for name in ("", " ", 3, "x" * 10_000):
        with pytest.raises(InvalidInputError):
            memory.spaces.create(name)  # type: ignore[arg-type]
    space = memory.space(memory.spaces.create("Studio").space_id)
    with pytest.raises(ConfigurationError, match="role"):
        space.invite("owner")  # type: ignore[arg-type]
    with pytest.raises(InvalidInputError):
        space.invite(uses=0)
    with pytest.raises(NotFoundError):
        space.set_member("nobody knows them", "reader")


def test_a_user_is_never_named_like_a_space(conn_string: str) -> None:
    with (
        SupabaseMemory.from_conn_string(conn_string, user_id="space:mine") as memory,
        pytest.raises(MigrationConflictError, match="migrate --spaces"),
    ):
        memory.conversation("t").append([HumanMessage("Hello")])


def test_without_the_switch_each_verb_says_how_to_set_it(memory: SupabaseMemory) -> None:
    for act in (lambda: memory.spaces.create("Studio"), memory.spaces.list, lambda: memory.spaces.join("a.b")):
        with pytest.raises(MigrationConflictError, match="migrate --spaces"):
            act()


def test_a_quote_is_contributed_and_taken_back(door: Door, people: tuple[str, str, str]) -> None:
    maya, ben, _ = people
    mine = door.of(maya).space(door.of(maya).spaces.create("Studio").space_id)
    door.of(ben).spaces.join(mine.invite("contributor").token)
    own = door.of(ben).conversation("diary")
    own.append([HumanMessage("I am tired. We fire the kiln on Friday.", id="m")])
    made = own.contribute("m", quote="we fire the kiln on Friday.", kind="action", to=mine.space_id)
    assert (made.quote, made.is_new, made.thread_id) == ("We fire the kiln on Friday.", True, "diary")
    (item,) = mine.memory.conversation("board").board.read().items
    assert (item.text, item.contributed_by, item.message_ids) == (made.quote, ben, [])
    assert (item.id, item.said_at) == (made.item_id, made.said_at)
    held = door.of(ben).spaces.shared_data()
    assert [(each.space_id, each.role, each.items) for each in held.spaces] == [(mine.space_id, "contributor", 1)]
    assert [(each.quote, each.message_id) for each in held.contributions] == [(made.quote, "m")]
    assert door.of(maya).spaces.shared_data().contributions == ()

    mine.withdraw(item)
    with pytest.raises(NotFoundError):
        door.of(ben).space(mine.space_id).withdraw(made)
    own.contribute(HumanMessage("", id="m"), quote=made.quote, to=mine.space_id)
    assert own.forget_message("m").contributions == 1
    assert mine.memory.conversation("board").board.read().items == []


def test_what_cannot_be_contributed_says_so(door: Door, people: tuple[str, str, str]) -> None:
    maya, ben, eve = people
    mine = door.of(maya).space(door.of(maya).spaces.create("Studio").space_id)
    door.of(ben).spaces.join(mine.invite("reader").token)
    for user, error in ((ben, PermissionDeniedError), (eve, NotFoundError)):
        own = door.of(user).conversation("diary")
        own.append([HumanMessage("The kiln is hot.", id="m")])
        with pytest.raises(error):
            own.contribute("m", quote="The kiln is hot.", to=mine.space_id)
    own = door.of(maya).conversation("diary")
    own.append([HumanMessage("The kiln is hot.", id="m")])
    for given in ({"quote": "The kiln is cold."}, {"quote": ""}, {"quote": "x" * 501}, {"kind": "secret"}):
        with pytest.raises(InvalidInputError):
            own.contribute("m", to=mine.space_id, **{"quote": "The kiln is hot.", **given})  # type: ignore[arg-type]
    with pytest.raises(NotFoundError):
        own.contribute("of nobody", quote="The kiln is hot.", to=mine.space_id)


async def test_a_deleted_user_takes_what_they_shared(door: Door, people: tuple[str, str, str]) -> None:
    maya, ben, _ = people
    mine = door.of(maya).space(door.of(maya).spaces.create("Studio").space_id)
    door.of(ben).spaces.join(mine.invite("contributor").token)
    mine.memory.conversation("plan").append([HumanMessage("Cone six.")])
    own = door.of(maya).conversation("diary")
    own.append([HumanMessage("The kiln is hot.", id="m")])
    _ = await own.acontribute("m", quote="The kiln is hot.", to=mine.space_id)
    receipt = door.of(maya).forget_user()
    assert (receipt.authored, receipt.contributions, receipt.memberships, receipt.spaces) == (1, 1, 1, 0)
    bens = door.of(ben).space(mine.space_id)
    assert [(each.user_id, each.role) for each in bens.info().members] == [(ben, "manager")]
    assert texts(bens.memory) == []
    assert door.of(ben).forget_user().spaces == 1


def test_a_deleted_user_leaves_no_id_in_what_they_edited_of_others(
    door: Door, people: tuple[str, str, str], cluster: Cluster, shared: str
) -> None:
    maya, ben, _ = people
    mine = door.of(maya).space(door.of(maya).spaces.create("Studio").space_id)
    door.of(ben).spaces.join(mine.invite("contributor").token)
    bens = door.of(ben).space(mine.space_id).memory.conversation("plan")
    bens.append([HumanMessage("The kiln is hot.")])
    mine.memory.conversation("plan").append([HumanMessage("I glaze the bowls in the morning."), AIMessage("Noted.")])
    plan = door.server.space(mine.space_id).memory.conversation("plan")
    plan.index()
    board = plan.board
    added, deleted = (board.add("fact", text, actor=maya) for text in ("Cone six.", "Cone ten."))
    board.edit(added, text="Cone seven.", actor=maya)
    board.pin(added, actor=ben)
    board.delete(deleted, actor=maya)
    board.edit_summary("They fire.", actor=maya)
    board.edit_summary("They fire on Friday.", actor=ben)
    plan.opt_out("glaze", actor=maya)

    door.of(maya).forget_user()
    (item,) = bens.board.read().items
    assert (item.text, item.author, item.edited_by) == ("Cone seven.", "deleted user", "deleted user")
    assert {change.changed_by for change in bens.board.read(history=True).changes} == {"deleted user", ben}
    with psycopg.connect(cluster.conn_string(shared)) as connection:
        tables = connection.execute(
            "select oid::regclass::text from pg_class where relnamespace = 'memory'::regnamespace and relkind in ('r', 'p')"
        ).fetchall()
        rows = {
            table: connection.execute(
                f"select count(*) from {table} t where strpos(t::text, %s) > 0".encode(), [maya]
            ).fetchone()
            for (table,) in tables
        }
    assert {table: count for table, count in rows.items() if count != (0,)} == {}


def test_a_private_conversation_of_a_space_is_its_members_for_a_day(
    door: Door, people: tuple[str, str, str], cluster: Cluster, shared: str
) -> None:
    maya, ben, _ = people
    space = door.of(maya).space(door.of(maya).spaces.create("Studio", keep=Retention(max_messages=5)).space_id)
    door.of(ben).spaces.join(space.invite("contributor").token)
    space.memory.conversation("plan", private=True).append([HumanMessage("Hello")])
    bens = door.of(ben).space(space.space_id).memory
    bens.conversation("plan").append([HumanMessage("Hello, Maya")])
    info = bens.conversation("plan").info()
    assert info.private
    assert texts(bens) == [(maya, "Hello"), (ben, "Hello, Maya")]
    bens.conversation("open").append([HumanMessage("Hello")])
    with pytest.raises(MigrationConflictError, match="Begin a new thread"):
        space.memory.conversation("open", private=True).append([HumanMessage("Hello")])
    with psycopg.connect(cluster.conn_string(shared), autocommit=True) as connection:
        connection.execute(
            "update memory.conversations set updated_at = updated_at - interval '25 hours' where user_id = %s",
            [space.space_id],
        )
        connection.execute(
            "update memory.conversation_messages set created_at = created_at - interval '25 hours' where user_id = %s",
            [space.space_id],
        )
    assert texts(bens) == []
    bens.conversation("next").append([HumanMessage("Hello")])
    assert sorted(each.thread_id for each in bens.conversations()) == ["next", "open"]
