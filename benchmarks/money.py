"""What the prompts of a whole conversation cost, once a provider caches their beginning.

Tokens are characters through four, so that a run repeats to the token. The beginning that a request shares with the one
before is cached; what a cached token costs, and from how many on, is each cache's rule.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise, takewhile
from statistics import median
from typing import TYPE_CHECKING, Any, Final

from langchain.agents import create_agent
from langchain.agents.middleware import SummarizationMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.messages.utils import count_tokens_approximately
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode, tools_condition
from langmem.short_term import RunningSummary, SummarizationNode
from pydantic import Field

from benchmarks.harness import Table, verdict
from benchmarks.talks import FACTS, Turn, demo, sixty, with_tools
from langchain_supabase_memory import ContextBudget, SupabaseMemory, SupabaseMemoryMiddleware

if TYPE_CHECKING:
    from collections.abc import Callable

    from benchmarks.services import Lab

SYSTEM: Final = "You help in a pottery studio. " * 27
"""Two hundred tokens that stand before everything."""

_TOKEN: Final = 4
_CACHED: Final = 0.1
_SUMMARY: Final = "They spoke of the studio, of orders, of dates and of what is to be done next week. " * 6
_BUDGETS: Final = {
    "memory, 12,000 characters": ContextBudget(characters=12_000),
    "memory, 4,000 tokens": ContextBudget(tokens=4_000),
    "memory, 2,000 tokens": ContextBudget(tokens=2_000),
}
_STOCK: Final = "SummarizationMiddleware, 4,000 / keep 20"
_NONE: Final = "no memory, a saver"


@tool
def read_log(day: int) -> str:
    """Read the studio's log of a day."""
    return f"Day {day}: " + "the kiln was filled, fired and left to cool; two boxes were sent. " * 4


class _Scripted(BaseChatModel):
    """Answers as the talk says, and keeps each prompt as text."""

    answers: list[AIMessage] = Field(default_factory=list)
    prompts: list[str] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        self.prompts.append("".join(map(_text, messages)))
        answer = self.answers[len(self.prompts) - 1] if self.answers else AIMessage(_SUMMARY)
        return ChatResult(generations=[ChatGeneration(message=answer)])

    def bind_tools(self, *_: Any, **__: Any) -> _Scripted:
        return self


def _text(message: BaseMessage) -> str:
    calls = getattr(message, "tool_calls", None)
    return f"<{message.type}>{message.text}{[call['args'] for call in calls] if calls else ''}"


@dataclass
class Bill:
    """The prompts of a talk.

    Attributes:
        prompts: Each request to the model, as text.
        own: The tokens of the summarizer's own requests and answers.
        found: How many prompts held what their question asked for.
        loops: The numbers of the prompts that go on in a tool loop.
    """

    prompts: list[str]
    own: float
    found: int
    loops: list[int]
    shared: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.shared = [0, *(_shared(first, second) for first, second in pairwise(self.prompts))]

    @property
    def sent(self) -> float:
        return sum(map(len, self.prompts)) / _TOKEN

    @property
    def share(self) -> float:
        """The median share of a request that the one before had, in the second half of the talk."""
        shares = [shared / len(prompt) for shared, prompt in zip(self.shared, self.prompts, strict=True)]
        return median(shares[len(shares) // 2 :])

    @property
    def loop_share(self) -> float:
        """The median share of a request within a tool loop that the one before had."""
        return median(self.shared[place] / len(self.prompts[place]) for place in self.loops)

    def cost(self, cached: Callable[[float], float], written: float = 1.0) -> float:
        """What they cost, in full tokens.

        Args:
            cached: How many of so many repeated tokens a cache serves.
            written: What a token costs that the cache takes up.
        """
        total = 0.0
        for shared, prompt in zip(self.shared, self.prompts, strict=True):
            served = cached(shared / _TOKEN)
            total += served * _CACHED + (len(prompt) / _TOKEN - served) * written
        return total


def _shared(first: str, second: str) -> int:
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(first, second, strict=False)))


def _ideal(tokens: float) -> float:
    return tokens


def _openai(tokens: float) -> float:
    return tokens // 128 * 128 if tokens >= 1024 else 0


def _from(least: int) -> Callable[[float], float]:
    return lambda tokens: tokens if tokens >= least else 0


async def run(lab: Lab) -> list[Table]:
    long_answers = sixty(sentences=40)
    talks = {
        "60 turns": sixty(),
        "60 turns, the user always asks": sixty(asking=True),
        "60 turns, with tools": with_tools(sixty()),
        "60 turns, long answers": long_answers[:20] if lab.quick else long_answers,
        "the demo's 346 turns": demo()[:100] if lab.quick else demo(),
    }
    site = lab.site("off")
    return [*(_table(name, talk, site.conn_string) for name, talk in talks.items()), _small(site.conn_string)]


def _table(name: str, talk: list[Turn], conn_string: str) -> Table:
    bills = {_NONE: _billed(talk, _agent([])), _STOCK: _stock(talk), "langmem, 4,000": _langmem(talk)}
    for title, budget in _BUDGETS.items():
        user_id = f"money {name} {title}"
        with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
            middleware = SupabaseMemoryMiddleware(memory, budget=budget)
            bills[title] = _billed(talk, _agent([middleware], saver=False), settle=memory.flush)
    stock, none = bills[_STOCK].cost(_ideal), bills[_NONE].cost(_ideal)
    rows: list[list[str | float]] = [
        [
            title,
            bill.sent,
            bill.cost(_ideal),
            bill.cost(_ideal) / stock,
            bill.cost(_ideal) / none,
            bill.cost(_openai),
            bill.cost(_from(1024), 1.25),
            bill.cost(_from(4096), 1.25),
            bill.own,
            bill.share,
            str(bill.found),
        ]
        for title, bill in bills.items()
    ]
    columns = [
        "tokens", "sent, the cost if cold", "ideal cache", "x stock", "x none", "OpenAI's rules",
        "Anthropic's, from 1,024", "from 4,096", "the summarizer's own", "shared with the last", "facts found",
    ]  # fmt: skip
    ours = [bills[title].cost(_ideal) / stock for title in list(_BUDGETS)[:2]]
    notes = [verdict("cost with an ideal cache, x stock", max(ours), 1.5 if "always" in name else 1.35)]
    if any(turn.calls for turn in talk):
        share = min(bills[title].loop_share for title in list(_BUDGETS)[:2])
        notes.append(verdict("share of a request in a tool loop that the one before had", share, 0.95, at_least=True))
    return Table(f"Money: {name}", columns, rows, notes)


def _small(conn_string: str) -> Table:
    """A pack of 500 tokens in place of 25 messages: what it spares, and which of the facts asked for stand in it."""
    talk = [turn for turn in sixty(sentences=8) if turn.user.startswith("By the way")][:13]
    said = [message for turn in talk for message in (HumanMessage(turn.user), AIMessage(turn.assistant))][:25]
    asked = [(text, value) for what, value in FACTS[:13] for text in (f"What was {what}?", f"Remind me of {what}")]
    with SupabaseMemory.from_conn_string(conn_string, user_id="money small") as memory:
        conversation = memory.conversation("t")
        conversation.append(said)
        packs = [(conversation.context(text, budget=ContextBudget(tokens=500)), value) for text, value in asked]
    whole = sum(len(message.text) for message in said) / _TOKEN
    sent = max(sum(len(message.text) for message in pack.messages) / _TOKEN for pack, _ in packs)
    kept = sum(any(value in message.text for message in pack.messages) for pack, value in packs) / len(packs)
    columns = ["tokens", "25 messages", "the largest pack of 500 tokens", "spared", "facts kept, of those asked for"]
    notes = [
        verdict("tokens spared, as a share", 1 - sent / whole, 0.83, at_least=True),
        verdict("facts kept, as a share", kept, 0.9, at_least=True),
    ]
    return Table(
        "Money: 500 tokens in place of 25 messages", columns, [["memory", whole, sent, 1 - sent / whole, kept]], notes
    )


def _agent(middleware: list[Any], *, saver: bool = True) -> Callable[[_Scripted], Any]:
    return lambda model: create_agent(
        model,
        [read_log],
        middleware=middleware,
        system_prompt=SYSTEM,
        checkpointer=InMemorySaver() if saver else None,
    )


def _billed(
    talk: list[Turn],
    make: Callable[[_Scripted], Any],
    own: Callable[[], float] = lambda: 0.0,
    settle: Callable[[], object] = lambda: None,
) -> Bill:
    model = _Scripted(answers=[answer for turn in talk for answer in _answers(turn)], prompts=[])
    graph, found, loops = make(model), 0, list[int]()
    for turn in talk:
        first = len(model.prompts)
        config = {"configurable": {"thread_id": "t"}, "recursion_limit": 100}
        graph.invoke({"messages": [HumanMessage(turn.user)]}, config)
        settle()  # people read an answer before they write again
        found += bool(turn.expects) and turn.expects in model.prompts[first]
        loops += range(first + 1, len(model.prompts))
    return Bill(model.prompts, own(), found, loops)


def _answers(turn: Turn) -> list[AIMessage]:
    calls = [{"name": "read_log", "args": {"day": day}, "id": f"call_{day}"} for day in range(turn.calls)]
    return [*(AIMessage("", tool_calls=[call]) for call in calls), AIMessage(turn.assistant)]


def _stock(talk: list[Turn]) -> Bill:
    writer = _Scripted(prompts=[])
    middleware = SummarizationMiddleware(writer, trigger=("tokens", 4000), keep=("messages", 20))
    return _billed(talk, _agent([middleware]), lambda: _own(writer))


def _own(writer: _Scripted) -> float:
    return sum(len(prompt) + len(_SUMMARY) for prompt in writer.prompts) / _TOKEN


class _State(MessagesState):
    context: dict[str, RunningSummary]
    summarized_messages: list[BaseMessage]


def _langmem(talk: list[Turn]) -> Bill:
    writer = _Scripted(prompts=[])

    def make(model: _Scripted) -> Any:
        def answer(state: _State) -> dict[str, Any]:
            return {"messages": [model.invoke([("system", SYSTEM), *state["summarized_messages"]])]}

        node = SummarizationNode(
            model=writer, max_tokens=4000, max_summary_tokens=256, token_counter=count_tokens_approximately,
            output_messages_key="summarized_messages",
        )  # fmt: skip
        graph = StateGraph(_State).add_node("summarize", node).add_node("answer", answer)
        graph.add_node("tools", ToolNode([read_log])).add_edge("tools", "summarize")
        graph.add_edge(START, "summarize").add_edge("summarize", "answer")
        return graph.add_conditional_edges("answer", tools_condition).compile(InMemorySaver())

    return _billed(talk, make, lambda: _own(writer))
