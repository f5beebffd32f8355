"""The prompt's beginning is a function of what is stored and of the budget, and moves only with a segment or a step."""

from __future__ import annotations

import random
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import timedelta
from itertools import pairwise
from subprocess import PIPE
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition

from langchain_supabase_memory import (
    ChunkPolicy,
    ContextBudget,
    MemoryConfig,
    Retention,
    SaveTurnNode,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseSummarizationNode,
    Worker,
)
from langchain_supabase_memory.agents.run.load import EVENT
from langchain_supabase_memory.context.reasons import FOR_RECALLED
from langchain_supabase_memory.context.recall_share import ASKED, UNASKED
from langchain_supabase_memory.context.token_meter import meter
from langchain_supabase_memory.language.query_hints.statement import is_question_or_request, mostly_asks
from langchain_supabase_memory.types import ContextPack, Conversation, Rollout
from langchain_supabase_memory.values import RecallScope
from tests.chat_models import ScriptedModel, calls, says
from tests.each_case import each_case

LOOPS = ["middleware-sync", "middleware-async", "saved-sync", "nodes-sync", "nodes-async"]
WORDS = [
    "kiln",
    "glaze",
    "cone",
    "shelf",
    "clay",
    "firing",
    "porcelain",
    "cobalt",
    "celadon",
    "bisque",
    "garden",
    "tomato",
    "frost",
    "ferry",
    "hostel",
    "lantern",
]

FRUIT = ["apples", "pears", "plums", "figs", "quinces", "cherries"]


def said(draw: random.Random, number: int) -> list[BaseMessage]:
    words = " ".join(draw.choices(WORDS, k=draw.randint(20, 60)))
    more = " ".join(draw.choices(WORDS, k=draw.randint(5, 90)))
    return [HumanMessage(f"Turn {number}: the {words}.", id=f"q{number}"), AIMessage(f"The {more}.", id=f"a{number}")]


def talk(conversation: Conversation, draw: random.Random, turns: int = 80) -> None:
    """Store turns at once, where it is no matter how they came in."""
    conversation.append([each for number in range(turns) for each in said(draw, number)])


TOLD = "I was in the studio all day long, with the others, and it was late when we went home again. "
"""What a question stands behind that is not about the past: the message tells more than it asks."""


def beginning(conversation: Conversation, question: str, budget: ContextBudget) -> list[str]:
    """What stands before what belongs to the turn."""
    return texts_of(conversation.context(question, budget=budget))


def texts_of(pack: ContextPack) -> list[str]:
    head = [] if pack.fitted.head_message is None else [pack.fitted.head_message]
    return [each.text for each in (*head, *(entry.message for entry in pack.fitted.recent))]


@pytest.mark.parametrize("budget", [ContextBudget(), ContextBudget(tokens=2_500)], ids=["characters", "tokens"])
@pytest.mark.parametrize("writer", ["quotes", "nobody"])
def test_it_moves_only_with_a_segment_or_a_step(
    conn_string: str, user_id: str, writer: str, budget: ContextBudget
) -> None:
    draw, moves, seen = random.Random(7), 0, []
    model: Any = {} if writer == "quotes" else {"model": None}
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, **model) as memory:
        conversation = memory.conversation("t")
        before: list[str] = []
        for number in range(60):
            question = f"{TOLD}What about the {draw.choice(WORDS)}?" if number % 3 else "Good morning."
            now = beginning(conversation, question, budget)
            if number % 3 == 0:
                assert now == beginning(conversation, f"{TOLD}Something else entirely, about frost?", budget)
            if now[: len(before)] != before:
                moves += 1
                if writer == "quotes":
                    segment = conversation.context(question, budget=budget).summary
                    assert segment is not None
                    assert segment.number not in seen, "each segment moves it once"
                    seen.append(segment.number)
            before = now
            conversation.append(said(draw, number))
        characters = memory.conversation("t").context("?", budget=budget).full_characters
    step = budget.about_characters * 35 // 100
    assert 3 <= moves <= characters // step + 1


def test_recent_messages_have_the_larger_part(memory: SupabaseMemory) -> None:
    draw, conversation, shares = random.Random(5), memory.conversation("t"), []
    for number in range(80):
        conversation.append(said(draw, number))
        pack = conversation.context(f"{TOLD}What of the kiln?")
        if number > 30:
            shares.append(sum(entry.counts[1] for entry in pack.fitted.recent) / 12_000)
            assert pack.used <= 12_000
    assert min(shares) >= 0.2
    assert sum(shares) / len(shares) >= 0.4


def test_who_asks_nothing_is_told_little(memory: SupabaseMemory) -> None:
    draw, conversation = random.Random(5), memory.conversation("t")
    talk(conversation, draw)
    conversation.context("Hello.")  # summarizes, so that there is something to recall

    def recalled(**asked: Any) -> int:
        return sum(len(chunk.content) for chunk in conversation.context(**asked).recalled)

    told, asked = recalled(current="The kiln and the glaze."), recalled(current="Remind me of the kiln and the glaze")
    assert told <= UNASKED < asked <= ASKED
    assert recalled(current="The kiln and the glaze.", query="the kiln and the glaze") >= asked, "a query always asks"
    conversation.append([HumanMessage(f"And the {word}?") for word in ("kiln", "glaze", "cone")])
    assert recalled(current="And the kiln and the glaze?") <= asked // 2, "questions in a row share it"


def a_past(conversation: Conversation) -> list[BaseMessage]:
    """Tell of the kiln long ago, and of much else since; the window is full, and a segment covers the kiln."""
    draw = random.Random(5)
    told: list[BaseMessage] = [
        HumanMessage(
            f"Firing {number} of the kiln went to {1000 + number} degrees, and {' '.join(draw.choices(WORDS, k=30))}."
        )
        for number in range(60)
    ]
    conversation.append(told)
    for start, end in pairwise((0, 1, 21, 41, 61, 81, 90)):  # in parts, each of which is summarized
        days = ((number, " ".join(draw.choices(FRUIT, k=50))) for number in range(start, end))
        conversation.append(
            [
                message
                for number, words in days
                for message in (
                    HumanMessage(f"Day {number}: {words}.", id=f"f{number}"),
                    AIMessage("Fine.", id=f"g{number}"),
                )
            ]
        )
        conversation.context("Hello.")
    conversation.index()
    return told


@pytest.mark.parametrize("budget", [ContextBudget(), ContextBudget(tokens=3_000)], ids=["characters", "tokens"])
def test_a_question_about_the_past_takes_room_for_its_own_turn(memory: SupabaseMemory, budget: ContextBudget) -> None:
    conversation = memory.conversation("t")
    a_past(conversation)
    before = conversation.context("Good morning.", budget=budget)
    asked = conversation.context("How hot was the kiln at the firing?", budget=budget)
    after = conversation.context("Good evening.", budget=budget)
    limit = budget.tokens or budget.characters or 0
    assert before.beginning == after.beginning, "the next turn returns to the old beginning"
    assert asked.used <= limit
    assert asked.remembered.weight(meter(budget)) > limit - before.used, "it takes more than there is"
    assert len(asked.fitted.recent) < len(before.fitted.recent)
    there = {entry.sequences for entry in before.fitted.recent} - {entry.sequences for entry in asked.fitted.recent}
    left_out = {
        number for first, last, why in asked.omitted for number in range(first, last + 1) if why == FOR_RECALLED
    }
    assert left_out == {number for sequences in there for number in sequences}
    assert (asked.due, asked.due_through) == (before.due, before.due_through), "nothing is summarized for it"
    assert "takes their room, in this turn alone" in str(asked.report())
    assert asked.beginning.moved_since(before.beginning) == "question"
    assert after.beginning.moved_since(asked.beginning) == "question"
    reasons = {why for _, _, why in asked.manifest.omitted}
    assert "recalled" in reasons
    assert after.manifest.since(asked.manifest).moved == asked.manifest.since(before.manifest).moved == "question"


def test_what_a_message_tells_before_it_asks_takes_no_room(memory: SupabaseMemory) -> None:
    conversation = memory.conversation("t")
    a_past(conversation)
    before = conversation.context("Good morning.")
    told = conversation.context(f"{TOLD}{TOLD}How hot was the kiln at the firing?")
    recent = conversation.context("How were the plums and the figs?")
    assert before.beginning == told.beginning == recent.beginning
    assert not told.fitted.gives_room


@pytest.mark.parametrize("way", LOOPS)
async def test_a_question_about_the_past_keeps_its_room_in_its_tool_loop(memory: SupabaseMemory, way: str) -> None:
    conversation = memory.conversation("t")
    a_past(conversation)
    chat = ScriptedModel(script=lambda prompt: _step(prompt))
    await Agent(memory, way, chat, [look]).ask(HumanMessage("How hot was the kiln at the firing?", id="now"))
    prompts = [[each.text for each in prompt] for prompt in chat.shown]
    whole = texts_of(conversation.context("Good morning."))
    assert prompts[0][: len(whole)] != whole
    moves = sum(second[: len(first)] != first for first, second in pairwise(prompts))
    assert len(prompts) == 6
    assert moves <= (1 if way.startswith(("middleware", "saved")) else 2), "by a step where it outgrows the room"


@each_case(
    ("text", "does"),
    [
        ("What was the code?", True),
        ("Remind me of the code.", True),
        ("I am back from the ferry. What was the code of the door?", True),
        ("Here I am. ¿Cuál era el código de la puerta?", True),
        ("昨日窯に行った。暗証番号は何でしたか?", True),
        (f"{'The kiln is hot. ' * 20}What now?", False),
        (f"What now? {'The kiln is hot. ' * 20}", False),
        ("The code is 4812.", False),
        ("", False),
        ("?", False),
        ("?" * 100_000, False),
        ("What was it? " * 100_000, True),
    ],
)
def test_whether_a_message_mostly_asks(text: str, does: bool) -> None:
    assert mostly_asks(text) is does


@each_case(
    ("text", "does"),
    [
        ("What was the code?", True),
        ("Remind me of the code", True),
        ("By the way, please give me the code again.", True),
        ("I am back. What was the code? I need it now.", True),
        ("Sag mir den Code", True),
        ("Dime el código", True),
        ("Rappelle-moi le code", True),
        ("Dimmi il codice", True),
        ("Me diga o código", True),
        ("Tolong beri tahu kodenya", True),
        ("Sabihin mo ang code", True),
        ("暗証番号は何ですか？", True),
        ("The code is 4812.", False),
        ("I told him the code and he gave me a look.", False),
        ("", False),
        ("a" * 1_000_000, False),
    ],
)
def test_whether_a_message_asks(text: str, does: bool) -> None:
    assert is_question_or_request(text) is does


@tool
def look(what: str) -> str:
    """Look something up."""
    return f"{what}: " + "fired at cone nine. " * 10


WAYS = [*LOOPS, "context-sync", "context-async", "rollout-sync", "interrupted-sync", "interrupted-async"]


class Agent:
    """An agent that has its prompt in one of the ways that there are."""

    def __init__(self, memory: SupabaseMemory, way: str, chat: ScriptedModel, tools: Sequence[Any] = (), **more: Any):
        self.memory, self.chat = memory, chat
        self.way, self.color = way.split("-")
        if self.way in ("middleware", "saved", "rollout", "interrupted"):
            saver = InMemorySaver() if self.way in ("saved", "interrupted") else None
            rollout = Rollout("on") if self.way == "rollout" else None
            middleware: Any = [SupabaseMemoryMiddleware(memory, rollout=rollout, **more)]
            stops = ["model"] if self.way == "interrupted" else None
            self.graph: Any = create_agent(
                chat, list(tools), middleware=middleware, checkpointer=saver, interrupt_before=stops
            )
        else:
            self.graph = _graph(SupabaseSummarizationNode(memory, **more), chat, tools)

    async def ask(self, question: HumanMessage) -> None:
        config = {"configurable": {"thread_id": "t"}}
        if self.way == "context":
            conversation = self.memory.conversation("t")
            if self.color == "sync":
                pack = conversation.context(question)
                conversation.append([question, self.chat.invoke(pack.prompt)])
            else:
                pack = await conversation.acontext(question)
                await conversation.aappend([question, await self.chat.ainvoke(pack.prompt)])
        elif self.color == "sync":
            self.graph.invoke({"messages": [question]}, config)
        else:
            await self.graph.ainvoke({"messages": [question]}, config)
        if self.way == "interrupted":
            _ = self.graph.invoke(None, config) if self.color == "sync" else await self.graph.ainvoke(None, config)
        await self.memory.aflush()  # a person reads the answer before they ask again


class Loop(MessagesState):
    summarized_messages: list[BaseMessage]


def _graph(node: SupabaseSummarizationNode, chat: ScriptedModel, tools: Sequence[Any]) -> Any:
    builder: Any = StateGraph(Loop)
    builder.add_node("load", node)
    builder.add_node("model", lambda state: {"messages": [chat.invoke(state["summarized_messages"])]})
    builder.add_node("tools", ToolNode(list(tools)))
    builder.add_node("save", SaveTurnNode(node._memory))
    builder.add_edge(START, "load")
    builder.add_edge("load", "model")
    builder.add_conditional_edges("model", tools_condition, {"tools": "tools", "__end__": "save"})
    builder.add_edge("tools", "load")
    builder.add_edge("save", END)
    return builder.compile()


def talkative(draw: random.Random) -> ScriptedModel:
    return ScriptedModel(script=lambda _: "The " + " ".join(draw.choices(WORDS, k=60)) + ".")


@pytest.mark.parametrize("writer", ["inline", "a worker"])
async def test_whoever_computes_it_has_the_same(conn_string: str, user_id: str, writer: str) -> None:
    draw = random.Random(11)
    chat = talkative(draw)
    mode: Any = "inline" if writer == "inline" else "background"
    config = MemoryConfig(policy=SummaryPolicy(mode=mode), chunking=ChunkPolicy(mode=mode))
    memory = SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=config)
    agents = [Agent(memory, way, chat) for way in WAYS]
    before: list[str] = []
    moves = 0
    for number in range(50):
        words = " ".join(draw.choices(WORDS, k=30))
        await draw.choice(agents).ask(HumanMessage(f"Turn {number}: the {words}. What of it?", id=f"q{number}"))
        if writer == "a worker" and number % 3 == 0:
            await Worker(memory).drain()
        now = [str(each.text) for each in chat.shown[-1][:-1]]
        moves += has_moved(before, now)
        before = now
    segments = len(memory.conversation("t").summaries.list())
    assert 3 <= moves <= (segments if writer == "inline" else 2 * segments + 1)
    await memory.aclose()


def has_moved(before: list[str], now: list[str]) -> bool:
    """Whether a beginning moved; only a newer segment may be the reason, or a step where none is made in time."""
    if now[: len(before)] == before:
        return False
    covered = [re.search(r'<summary messages="0-(\d+)">', texts[0]) for texts in (before, now)]
    numbers = [int(each[1]) if each else -1 for each in covered]
    assert numbers[1] > numbers[0] or now[1] in before[2:]
    return True


def test_a_history_begins_alike_from_turn_to_turn(memory: SupabaseMemory) -> None:
    draw = random.Random(11)
    chat, before, moves = talkative(draw), list[str](), 0
    for number in range(60):
        history = SupabaseChatMessageHistory("t", memory)
        question = HumanMessage(f"Turn {number}: what of the {' '.join(draw.choices(WORDS, k=30))}?")
        history.add_messages([question, chat.invoke([*history.messages, question])])
        now = [str(each.text) for each in chat.shown[-1][:-1]]
        moves += has_moved(before, now)
        before = now
    assert 3 <= moves <= len(memory.conversation("t").summaries.list())


async def test_two_agents_with_two_budgets_each_have_their_own(memory: SupabaseMemory) -> None:
    draw = random.Random(11)
    chat = talkative(draw)
    agents = [
        Agent(memory, "middleware-sync", chat, budget=ContextBudget(characters=characters))
        for characters in (8_000, 16_000)
    ]
    before: list[list[str]] = [[], []]
    for number in range(60):
        place = number % 2
        words = " ".join(draw.choices(WORDS, k=30))
        await agents[place].ask(HumanMessage(f"Turn {number}: the {words}. What of it?", id=f"q{number}"))
        now = [str(each.text) for each in chat.shown[-1][:-1]]
        has_moved(before[place], now)
        before[place] = now


@pytest.mark.parametrize("way", LOOPS)
@pytest.mark.parametrize("scope", ["conversation", "user"])
async def test_a_tool_loop_appends_and_moves_the_window_at_most_once(
    memory: SupabaseMemory, way: str, scope: RecallScope
) -> None:
    draw = random.Random(9)
    memory.conversation("other").append(said(draw, 100))
    talk(memory.conversation("t"), draw)
    memory.conversation("t").context("Hello.")
    memory.work.index_due()
    chat = ScriptedModel(script=lambda prompt: _step(prompt))
    await Agent(memory, way, chat, [look], recall=scope).ask(
        HumanMessage("What was said of the kiln and the glaze?", id="now")
    )
    prompts = [[each.text for each in prompt] for prompt in chat.shown]
    assert len(prompts) == 6
    asked = prompts[0][-1]
    assert "<recalled>" in asked
    assert all(asked in prompt for prompt in prompts), "what belongs to the turn is chosen once"
    moves = sum(second[: len(first)] != first for first, second in pairwise(prompts))
    assert moves <= 2, "for the segment behind the first call, and by a step where the loop outgrows the room"


@pytest.mark.parametrize("way", LOOPS)
@pytest.mark.parametrize("thread", ["t", "other"])
async def test_what_is_forgotten_in_a_tool_loop_is_not_shown_again(
    memory: SupabaseMemory, way: str, thread: str
) -> None:
    draw = random.Random(9)
    secret: list[BaseMessage] = [HumanMessage("The kiln's door code is 4812.", id="secret"), AIMessage("Noted.")]
    memory.conversation(thread).append(secret)
    talk(memory.conversation("t"), draw)
    memory.conversation("t").context("Hello.")
    memory.work.index_due()

    def answer(prompt: list[BaseMessage]) -> AIMessage:
        if len(chat.shown) == 2:
            memory.conversation(thread).forget_message("secret")
        return _step(prompt)

    chat = ScriptedModel(script=answer)
    await Agent(memory, way, chat, [look], recall="user").ask(HumanMessage("What was the code of the kiln's door?"))
    shown = ["4812" in "".join(each.text for each in prompt) for prompt in chat.shown]
    assert shown == [True, True, False, False, False, False]


def changes(conversation: Conversation) -> dict[str, Callable[[], object]]:
    item = conversation.board.read().facts[0]
    return {
        "the conversation": conversation.forget,
        "an item": lambda: conversation.board.delete(item, actor="maya"),
        "an item's words": lambda: conversation.board.edit(item, text="Nothing.", actor="maya"),
        "the summary": lambda: conversation.board.edit_summary("Nothing.", actor="maya"),
    }


@pytest.mark.parametrize("way", ["middleware-sync", "nodes-async"])
@pytest.mark.parametrize("what", ["the conversation", "an item", "an item's words", "the summary"])
async def test_what_a_person_takes_away_in_a_tool_loop_is_not_shown_again(
    memory: SupabaseMemory, way: str, what: str
) -> None:
    draw, conversation = random.Random(9), memory.conversation("t")
    talk(conversation, draw)
    conversation.context("Hello.")
    conversation.index()
    conversation.board.add("fact", "The door's code is 4812.", actor="maya")
    if what == "the summary":
        conversation.board.edit(conversation.board.read().facts[0], text="A door.", actor="maya")
        conversation.board.edit_summary("The door's code is 4812.", actor="maya")
    change = changes(conversation)[what]

    def answer(prompt: list[BaseMessage]) -> AIMessage:
        if len(chat.shown) == 2:
            change()
        return calls("look", what=f"kiln {len(chat.shown)}") if len(chat.shown) < 5 else AIMessage("Done.")

    chat = ScriptedModel(script=answer)
    await Agent(memory, way, chat, [look]).ask(HumanMessage("What of the glaze?"))
    shown = ["4812" in "".join(each.text for each in prompt) for prompt in chat.shown]
    assert shown == [True, True, False, False, False]


def test_what_one_user_recalls_is_in_no_other_users_prompt(conn_string: str, user_id: str) -> None:
    signed_in = [user_id]
    with SupabaseMemory.from_conn_string(conn_string) as base:
        memory = base.for_token(lambda: {"sub": signed_in[0], "role": "authenticated"})
        conversation, draw = memory.conversation("t"), random.Random(9)
        conversation.append([HumanMessage("The kiln's door code is 4812."), AIMessage("Noted.")])
        talk(conversation, draw, 60)
        conversation.context("Hello.")
        conversation.index()
        chat = says("Cone nine.")
        agent: Any = create_agent(chat, [look], middleware=[SupabaseMemoryMiddleware(memory)])
        config = {"configurable": {"thread_id": "t"}}
        agent.invoke({"messages": [HumanMessage("What was the code of the kiln's door?", id="q")]}, config)
        assert "4812" in str(chat.shown[-1])
        signed_in[0] = f"{user_id}-foe"
        loop = [HumanMessage("Hi", id="q"), calls("look", what="k"), ToolMessage("x", tool_call_id="call_look_1")]
        agent.invoke({"messages": loop}, config)
        assert "4812" not in str(chat.shown[-1])


@pytest.mark.parametrize("most", [2, 3, 5, 20])
def test_what_a_few_messages_do_not_show_is_covered(memory: SupabaseMemory, most: int) -> None:
    conversation = memory.conversation("t")
    for number in range(20):
        asked = [{"name": "look", "args": {"what": "kiln"}, "id": f"c{number}{each}"} for each in range(2)]
        results = [ToolMessage("Hot.", tool_call_id=f"c{number}{each}") for each in range(2)]
        conversation.append(
            [HumanMessage(f"Question {number}"), AIMessage("", tool_calls=asked), *results, AIMessage("So it is.")]
        )
        pack = conversation.context("And now?", budget=ContextBudget(max_messages=most))
        assert (pack.omitted, pack.due) == ([], False), number


class Story:
    """A conversation to which anything happens."""

    def __init__(self, memory: SupabaseMemory, seed: int) -> None:
        self.draw, self.conversation = random.Random(seed), memory.conversation("t")
        self.ids: list[str] = []

    def say(self) -> str:
        turn = said(self.draw, len(self.ids))
        self.ids += [str(each.id) for each in turn]
        self.conversation.append(turn)
        return "say"

    def edit(self) -> str:
        self.conversation.append([HumanMessage("Something else " * self.draw.randrange(1, 40), id=self.some())])
        return "edit"

    def forget(self) -> str:
        self.conversation.forget_message(self.some())
        return "forget"

    def rewrite(self) -> str:
        segments = self.conversation.summaries.list()
        if not segments:
            return self.say()
        self.conversation.summaries.edit(segments[-1].number, f"Words {self.draw.random()}.", actor="maya")
        return "rewrite"

    def remember(self) -> str:
        self.conversation.board.add("fact", f"The {self.draw.choice(WORDS)} is {self.draw.random()}.", actor="maya")
        return "remember"

    def some(self) -> str:
        return self.draw.choice(self.ids[-40:])

    def happens(self) -> str:
        more = [self.edit, self.forget, self.rewrite, self.remember]
        does = self.say if len(self.ids) < 40 or self.draw.random() < 0.8 else self.draw.choice(more)
        return does()


MAY_MOVE: dict[str, set[str]] = {
    "say": {"segment", "step", "indexed"},
    "remember": set(),
    "rewrite": {"rewritten", "indexed"},
    "edit": {"edited", "deleted", "rewritten", "segment", "step", "indexed"},
    "forget": {"edited", "deleted", "rewritten", "segment", "step", "indexed"},
}


@pytest.mark.parametrize(("writer", "seed"), [("quotes", 0), ("nobody", 1)])
def test_every_move_has_a_reason_and_another_process_agrees(
    conn_string: str, user_id: str, writer: str, seed: int
) -> None:
    program = (
        "import sys\n"
        "from langchain_supabase_memory import SupabaseMemory\n"
        f"with SupabaseMemory.from_conn_string({conn_string!r}, user_id={user_id!r}) as memory:\n"
        "    for question in sys.stdin:\n"
        "        fitted = memory.conversation('t').context(question.strip(), model=None).fitted\n"
        "        head = [fitted.head_message] if fitted.head_message else []\n"
        "        texts = [each.text for each in (*head, *(entry.message for entry in fitted.recent))]\n"
        "        print(repr(texts), flush=True)\n"
    )
    other = subprocess.Popen([sys.executable, "-c", program], stdin=PIPE, stdout=PIPE, text=True)
    reasons = Counter[str]()
    with other, SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        assert other.stdin is not None
        assert other.stdout is not None
        story, before = Story(memory, seed), None
        model: Any = {} if writer == "quotes" else {"model": None}
        for number in range(100):
            happened = story.happens()
            question = f"{TOLD if number % 5 else ''}What about the {story.draw.choice(WORDS)}?"
            pack = story.conversation.context(question, **model)
            now = texts_of(pack)
            if pack.fitted.gives_room:
                reasons["question"] += 1
                assert before is not None
                assert pack.beginning.moved_since(before[0]) == before[0].moved_since(pack.beginning) == "question"
                continue
            if before is not None:
                reason = pack.beginning.moved_since(before[0])
                if now[: len(before[1])] != before[1]:
                    assert reason in MAY_MOVE[happened], (number, happened)
                    reasons[reason or ""] += 1
                else:
                    assert reason is None, (number, happened)
            before = pack.beginning, now
            if number % 4 == 0:
                other.stdin.write(f"{TOLD}Something else, of the frost?\n")
                other.stdin.flush()
                assert other.stdout.readline() == f"{now!r}\n"
        other.stdin.close()
    assert reasons["edited"] + reasons["deleted"] >= 1
    assert reasons["segment" if writer == "quotes" else "step"] >= 3
    assert sum(reasons.values()) - reasons["question"] <= 40


@pytest.mark.parametrize(
    "more",
    [
        {"budget": ContextBudget(max_messages=20)},
        {"retention": Retention(max_turns=10)},
        {"retention": Retention(max_messages=20)},
        {"retention": Retention(max_turns=10, max_age=timedelta(days=1))},
    ],
    ids=["max_messages", "turns", "messages", "turns and age"],
)
@pytest.mark.parametrize("writer", ["quotes", "nobody"])
def test_what_limits_the_number_of_messages_moves_it_by_half(
    conn_string: str, user_id: str, writer: str, more: dict[str, Any]
) -> None:
    model: Any = {} if writer == "quotes" else {"model": None}
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, **model, **more) as memory:
        conversation, moves, shown = memory.conversation("t"), 0, []
        before: list[str] = []
        for number in range(60):
            conversation.append([HumanMessage(f"Question {number}"), AIMessage(f"Answer {number}")])
            pack = conversation.context(f"And {number}?")
            now = texts_of(pack)
            moves += now[: len(before)] != before
            shown.append(len(pack.fitted.recent))
            before = now
    assert max(shown) <= 20
    assert min(shown[15:]) >= 10
    assert moves <= 60 * 2 // 10 + 1


async def test_the_report_says_why_it_moved(memory: SupabaseMemory) -> None:
    draw = random.Random(2)
    chat = ScriptedModel(script=lambda _: "The " + " ".join(draw.choices(WORDS, k=90)) + ".")
    agent: Any = create_agent(chat, middleware=[SupabaseMemoryMiddleware(memory)])
    moved = []
    for number in range(30):
        asked: Any = {"messages": [HumanMessage(f"Turn {number}: the {' '.join(draw.choices(WORDS, k=50))}.")]}
        async for event in agent.astream(asked, {"configurable": {"thread_id": "t"}}, stream_mode="custom"):
            if event["type"] == EVENT:
                moved.append(event["report"]["moved"])
    assert moved[0] is None
    assert {each for each in moved if each} == {"segment"}
    page = memory.conversation("t").manifests(limit=30)
    prompts = list(reversed(page.manifests))
    kept = [later.since(earlier).moved for earlier, later in pairwise(prompts)]
    assert kept == moved[1:], "what is kept of the prompts says the same"


def _step(prompt: list[BaseMessage]) -> AIMessage:
    done = sum(each.type == "tool" and each.text.startswith("kiln") for each in prompt)
    return AIMessage("Cone nine.") if done == 5 else calls("look", what=f"kiln {done}")


def test_a_message_longer_than_the_window_is_cut_and_shown(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, model=None, config=MemoryConfig(policy=SummaryPolicy(mode="background"))
    ) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("kiln " * 12_000, id="paste"), AIMessage("Read.", id="read")])
        pack = conversation.context("And?")
        assert pack.clipped == [0]
        assert pack.used <= 12_000
