"""The tool that shares a quote with a team: nothing leaves unless the person agrees, and a refusal says what to do."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Command

from langchain_supabase_memory import Retention, SupabaseMemory, SupabaseMemoryMiddleware
from langchain_supabase_memory.errors import ConfigurationError, InvalidInputError
from langchain_supabase_memory.language.messages.invisible import is_invisible
from langchain_supabase_memory.tools import share_with_team_tool
from tests.agents.test_profile_tools import ask, run
from tests.chat_models import calls, says
from tests.services.data_api import DataApi, token, verified
from tests.services.postgres import Cluster

COLORS = pytest.mark.parametrize("color", ["sync", "async"])
APPROVED = {"decisions": [{"type": "approve"}]}
SAID = "I am tired. We fire the kiln on Friday."
QUOTE = "We fire the kiln on Friday."


@dataclass(frozen=True)
class Team:
    """A space with a manager, a contributor and a reader.

    Attributes:
        server: A memory with a server's rights.
        space_id: The space.
        ben: The contributor, who has said something in the conversation `t`.
    """

    server: SupabaseMemory
    space_id: str
    ben: SupabaseMemory

    def board(self) -> list[tuple[str, str | None]]:
        """What stands on its board, and who has contributed it."""
        board = self.server.space(self.space_id).memory.conversation("board").board.read()
        return [(each.text, each.contributed_by) for each in board.items]


def user(request: pytest.FixtureRequest, door: str, server: SupabaseMemory, name: str) -> SupabaseMemory:
    """A user's memory: a server that names them, claims over a direct connection, or a token at the Data API."""
    if door == "server":
        return server.for_user(name)
    if door == "claims":
        return server.for_token(verified(token("authenticated", name)))
    api: DataApi = request.getfixturevalue("shared_api")
    return SupabaseMemory.from_url(api.url, token("anon"), rest_path="").for_token(token("authenticated", name))


@pytest.fixture(params=["server", "claims", "token"])
def door(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def team(request: pytest.FixtureRequest, cluster: Cluster, shared: str, door: str, user_id: str) -> Iterator[Team]:
    with SupabaseMemory.from_conn_string(cluster.conn_string(shared)) as server:
        manager = server.for_user(f"{user_id}-maya")
        space = manager.space(manager.spaces.create("Studio \u202e").space_id)
        for name, role in (("ben", "contributor"), ("rea", "reader")):
            server.space(space.space_id).set_member(f"{user_id}-{name}", role)  # type: ignore[arg-type]
        ben = user(request, door, server, f"{user_id}-ben")
        ben.conversation("t").append([HumanMessage(SAID, id="m0"), AIMessage("Noted. Shall I tell the team?", id="m1")])
        yield Team(server, space.space_id, ben)


def agent(team: Team, *calls_: AIMessage, **settings: Any) -> Any:
    tool = share_with_team_tool(team.ben, space_id=team.space_id, **settings)
    middleware: Any = [SupabaseMemoryMiddleware(team.ben)]
    return create_agent(says(*calls_, "done"), [tool], middleware=middleware, checkpointer=InMemorySaver())


def results(state: Any) -> list[str]:
    return [str(each.content) for each in state["messages"] if isinstance(each, ToolMessage)]


@COLORS
async def test_the_person_is_asked_and_the_quote_is_on_the_board(team: Team, color: str) -> None:
    graph = agent(team, calls("share_with_team", quote="we fire  the kiln on friday.", kind="action"))
    state = await run(color, graph, {"messages": [HumanMessage("Tell the team when we fire.")]})
    (interrupt,) = state["__interrupt__"]
    (request,) = interrupt.value["action_requests"]
    assert request["name"] == "share_with_team"
    assert request["args"] == {"quote": QUOTE, "kind": "action", "message": 0}
    what, quote, origin, space, named = request["description"].split("\n")
    assert (what, quote) == ("Share this with 3 members of a space?", f"Quote: {QUOTE}")
    assert origin.startswith("From: message 0 by user on 2")
    assert (space, named) == ("Space: Studio \\u202e", f"Id: {team.space_id}")
    assert not any(is_invisible(each) for each in request["description"])
    assert interrupt.value["review_configs"] == [
        {"action_name": "share_with_team", "allowed_decisions": ["approve", "reject"]}
    ]
    assert team.board() == [], "nothing has left yet"
    (told,) = results(await run(color, graph, Command(resume=APPROVED)))
    assert "Shared with the team, as item" in told
    ((text, by),) = team.board()
    assert text == QUOTE
    assert by is not None
    assert by.endswith("-ben")
    await team.ben.aclose()


@COLORS
async def test_nothing_leaves_unless_the_person_agrees(team: Team, color: str) -> None:
    answers: list[Any] = [
        {"decisions": [{"type": "reject"}]}, {"decisions": []}, {"decisions": [{"type": "approve"}] * 2},
        {"decisions": "approve"}, {"decisions": ["approve"]}, "yes", True, "approve", {"type": "approve"},
        {"decisions": [{"type": "edit", "edited_action": {"name": "share_with_team", "args": {"quote": "x"}}}]},
    ]  # fmt: skip
    for place, answer in enumerate(answers):
        graph = agent(team, calls("share_with_team", quote=QUOTE, message=0))
        thread = f"answer {place}"
        team.ben.conversation(thread).append([HumanMessage(SAID)])
        state = await run(color, graph, {"messages": [HumanMessage("Hello")]}, thread)
        assert len(state["__interrupt__"]) == 1
        (told,) = results(await run(color, graph, Command(resume=answer), thread))
        assert "The user did not agree. Nothing was shared; do not ask again." in told, answer
        assert team.board() == [], answer
    # Without a graph nobody can be asked.
    tool = share_with_team_tool(team.ben, space_id=team.space_id, thread_id="t")
    assert "Nobody can be asked here, so nothing was shared." in await ask(color, tool, quote=QUOTE)
    assert team.board() == []
    await team.ben.aclose()


@COLORS
async def test_what_has_changed_while_the_person_was_asked_counts(team: Team, color: str, user_id: str) -> None:
    ben = f"{user_id}-ben"

    async def told_after(change: Callable[[], object], thread: str) -> str:
        team.ben.conversation(thread).append([HumanMessage(SAID, id="m0")])
        graph = agent(team, calls("share_with_team", quote=QUOTE, message="m0"))
        await run(color, graph, {"messages": [HumanMessage("Tell them.")]}, thread)
        change()
        (told,) = results(await run(color, graph, Command(resume=APPROVED), thread))
        return told

    edited = HumanMessage("I am tired.", id="m0")
    assert "does not say that" in await told_after(lambda: team.ben.conversation("edited").append([edited]), "edited")
    forgotten = await told_after(lambda: team.ben.conversation("forgotten").forget_message("m0"), "forgotten")
    assert "There is no such message." in forgotten
    space = team.server.space(team.space_id)
    assert "may only read" in await told_after(lambda: space.set_member(ben, "reader"), "reader")
    space.set_member(ben, "contributor")
    assert "not in this team" in await told_after(lambda: space.set_member(ben, None), "removed")
    assert team.board() == []
    await team.ben.aclose()


@COLORS
async def test_of_several_calls_at_once_one_is_asked_about(team: Team, color: str) -> None:
    both = AIMessage(
        "",
        tool_calls=[
            {"name": "share_with_team", "args": {"quote": QUOTE}, "id": "first"},
            {"name": "share_with_team", "args": {"quote": "I am tired."}, "id": "second"},
        ],
    )
    builder = StateGraph(MessagesState)
    builder.add_node("tools", ToolNode([share_with_team_tool(team.ben, space_id=team.space_id)]))
    builder.add_edge(START, "tools")
    for graph in (agent(team, both), builder.compile(checkpointer=InMemorySaver())):
        team.ben.conversation("t").append([HumanMessage(SAID)])
        state = await run(color, graph, {"messages": [HumanMessage("Tell them"), both]})
        (interrupt,) = state["__interrupt__"]
        assert interrupt.value["action_requests"][0]["args"]["quote"] == QUOTE
        told = results(await run(color, graph, Command(resume=APPROVED)))
        assert ["share one quote at a time" in each for each in told][-2:] == [False, True]
        assert [text for text, _ in team.board()] == [QUOTE]
    await team.ben.aclose()


@COLORS
async def test_where_the_developer_says_so_nobody_is_asked(team: Team, color: str) -> None:
    tool = share_with_team_tool(team.ben, space_id=team.space_id, ask=False, thread_id="t")
    assert "asked" not in tool.description
    assert "Shared with the team" in await ask(color, tool, quote=QUOTE, kind="action")
    assert "The team has it already" in await ask(color, tool, quote=QUOTE, kind="action", message="0")
    assert "Shared with the team" in await ask(color, tool, quote="Shall I tell the team?", kind="question", message=1)
    assert "Shared with the team" in await ask(color, tool, quote="I am tired.", message="m0")
    assert {text for text, _ in team.board()} == {QUOTE, "Shall I tell the team?", "I am tired."}
    call = {"name": tool.name, "args": {"quote": QUOTE}, "id": "1", "type": "tool_call"}
    message = tool.invoke(call) if color == "sync" else await tool.ainvoke(call)
    assert (message.artifact[0]["thread_id"], message.artifact[0]["message_ids"]) == ("t", ["m0"])
    assert "kiln" not in json.dumps(message.artifact)
    await team.ben.aclose()


@COLORS
async def test_a_refusal_tells_the_model_what_to_do_next(
    team: Team, door: str, color: str, user_id: str, request: pytest.FixtureRequest
) -> None:
    tool = share_with_team_tool(team.ben, space_id=team.space_id, ask=False, thread_id="t")
    wrong: list[tuple[dict[str, Any], str]] = [
        ({"quote": "We fire it on Monday."}, "No new message of the user says that, so nothing was shared. Quote it"),
        ({"quote": "Shall I tell the team?"}, "No new message of the user says that"),
        ({"quote": QUOTE, "message": 1}, "This message does not say that"),
        ({"quote": QUOTE, "message": 99}, "There is no such message."),
        ({"quote": QUOTE, "message": 10**30}, "There is no such message."),
        ({"quote": QUOTE, "message": -1}, "There is no such message."),
        ({"quote": QUOTE, "message": "nobody's"}, "There is no such message."),
        ({"quote": " \u200b "}, "No new message of the user says that"),
        ({"quote": "x" * 501}, "The arguments are wrong. quote"),
        ({"quote": QUOTE, "kind": "secret"}, "The arguments are wrong. kind"),
    ]
    for arguments, words in wrong:
        told = await ask(color, tool, **arguments)
        assert words in told, arguments
        assert "PT4" not in told
    people = {"rea": "In this team the user may only read", "eve": "The user is not in this team"}
    opened = []
    for name, words in people.items():
        opened.append(memory := user(request, door, team.server, f"{user_id}-{name}"))
        memory.conversation("t").append([HumanMessage(SAID)])
        theirs = share_with_team_tool(memory, space_id=team.space_id, ask=False, thread_id="t")
        assert words in await ask(color, theirs, quote=QUOTE)
        nowhere = "space:00000000-0000-4000-8000-000000000000"
        elsewhere = share_with_team_tool(memory, space_id=nowhere, ask=False, thread_id="t")
        told = await ask(color, elsewhere, quote=QUOTE)
        assert people["eve"] in told, "one that is not there is refused as one that others have"
    team.ben.conversation("t").opt_out("kiln", actor="ben")
    assert "does not want it to be remembered" in await ask(color, tool, quote=QUOTE)
    team.server.space(team.space_id).set_member(f"{user_id}-ben", None)
    assert people["eve"] in await ask(color, tool, quote="I am tired.")
    assert team.board() == []
    inside = share_with_team_tool(
        team.server.space(team.space_id).memory, space_id=team.space_id, ask=False, thread_id="t"
    )
    assert "belongs to a team already" in await ask(color, inside, quote=QUOTE)
    for each in (*opened, team.ben):
        await each.aclose()


@COLORS
async def test_the_model_names_no_space_and_no_user(team: Team, color: str, user_id: str) -> None:
    manager = team.server.for_user(f"{user_id}-maya")
    manager.conversation("t").append([HumanMessage("My salary is 4711.")])
    other = manager.spaces.create("Elsewhere").space_id
    team.server.space(other).set_member(f"{user_id}-ben", "contributor")
    tool = share_with_team_tool(team.ben, space_id=team.space_id, ask=False, thread_id="t")
    assert set(tool.args) == {"quote", "kind", "message"}
    named = {
        "space_id": other,
        "space": other,
        "to": other,
        "user_id": f"{user_id}-maya",
        "thread_id": "x",
        "ask": True,
    }
    assert "No new message" in await ask(color, tool, quote="My salary is 4711.", **named)
    assert "Shared with" in await ask(color, tool, quote=QUOTE, **named)
    assert [text for text, _ in team.board()] == [QUOTE]
    assert Team(team.server, other, team.ben).board() == []
    await team.ben.aclose()


def test_what_cannot_be_bound_is_refused(memory: SupabaseMemory) -> None:
    with pytest.raises(InvalidInputError, match="not the id of a space"):
        share_with_team_tool(memory, space_id="Studio")
    wrong: Any = "no"
    with pytest.raises(ConfigurationError, match="ask"):
        share_with_team_tool(memory, space_id="space:x", ask=wrong)


@COLORS
async def test_where_spaces_are_off_it_says_so(memory: SupabaseMemory, color: str) -> None:
    memory.conversation("t").append([HumanMessage(SAID)])
    space_id = "space:00000000-0000-4000-8000-000000000000"
    tool = share_with_team_tool(memory, space_id=space_id, ask=False, thread_id="t")
    assert "not switched on here, so nothing was shared. Go on without sharing." in await ask(color, tool, quote=QUOTE)
    await memory.aclose()


async def test_what_has_expired_is_not_shared(cluster: Cluster, shared: str, user_id: str) -> None:
    conn_string = cluster.conn_string(shared)
    with (
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as everything,
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id, retention=Retention(max_messages=1)) as newest,
    ):
        space_id = everything.spaces.create("Studio").space_id
        everything.conversation("t").append([HumanMessage(SAID), HumanMessage("Hello")])
        for message, words in ((None, "No new message of the user says that"), (0, "There is no such message.")):
            tool = share_with_team_tool(newest, space_id=space_id, ask=False, thread_id="t")
            assert words in await ask("sync", tool, quote=QUOTE, message=message)
        tool = share_with_team_tool(everything, space_id=space_id, ask=False, thread_id="t")
        assert "Shared with the team" in await ask("sync", tool, quote=QUOTE)
