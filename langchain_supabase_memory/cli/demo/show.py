"""The story, on the terminal: a process stores a long conversation, is killed, goes on, and an agent is questioned."""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import sys
import tempfile
import textwrap
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from langchain_supabase_memory.adapters.telemetry import alerts
from langchain_supabase_memory.adapters.transports.embedded import start_migrated
from langchain_supabase_memory.adapters.transports.event_loop import run
from langchain_supabase_memory.cli.demo import replay, seen, transcript
from langchain_supabase_memory.cli.demo.agent import BUDGET, POLICY, Answer, DemoAgent
from langchain_supabase_memory.cli.demo.model import quote
from langchain_supabase_memory.cli.demo.replay import THREAD, USER
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.language.messages.invisible import spell_out, spell_out_lines
from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.operations.recall.chunk_timeline import chunk_timeline
from langchain_supabase_memory.settings import SummaryPolicy
from langchain_supabase_memory.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from langchain_core.embeddings import Embeddings
    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from langchain_supabase_memory.adapters.summarizer import Summarizer
    from langchain_supabase_memory.context.report import ContextReport
    from langchain_supabase_memory.worker import WorkerStats

_REPLAY = f"""
import sys
from {replay.__name__} import main
main(*sys.argv[1:])
"""
"""The process that stores the conversation."""

_SHOWN = 5
"""How many items of each kind of the board are shown."""

_LONGEST = 110
"""How many characters of an item."""

_NAMES = 12
"""How many people, places and topics of it."""

_SUMMARY = 280
"""About how many characters of its summary."""

_TYPES = ("person", "place", "organization", "other", "date", None)


def show(
    console: Console,
    folder: Path,
    model: BaseChatModel,
    summarizer: Summarizer,
    *,
    path: Path | None,
    questions: list[str] | None,
    embeddings: Embeddings | None = None,
) -> None:
    """Run the demo.

    Args:
        console: Where it is shown.
        folder: Where the embedded database lies; it stays there to explore.
        model: The agent's chat model.
        summarizer: What writes the summaries.
        path: A transcript of the user's; the bundled one by default.
        questions: What to ask; the bundled transcript's questions by default.
        embeddings: What finds by meaning; without it what was said is found by its words.

    Raises:
        SupabaseMemoryError: The transcript is none, or the database cannot be started.
    """
    with _Alerts() as told:
        _show(console, folder, model, summarizer, told, path=path, questions=questions, embeddings=embeddings)


def _show(
    console: Console,
    folder: Path,
    model: BaseChatModel,
    summarizer: Summarizer,
    told: _Alerts,
    *,
    path: Path | None,
    questions: list[str] | None,
    embeddings: Embeddings | None,
) -> None:
    said = transcript.load(path)
    console.print(Panel.fit("An agent that remembers, on a Postgres of its own", style="bold"))
    with console.status("Starting the embedded Postgres and making the schema …"):
        conn_string = start_migrated(folder)
    with SupabaseMemory.from_conn_string(
        conn_string, user_id=USER, model=summarizer, embeddings=embeddings, budget=BUDGET, policy=POLICY
    ) as memory:
        memory.conversation(THREAD).forget()
        _replay(console, conn_string, said, path)
        stored = memory.conversation(THREAD).read(columns=["characters", "tokens", "text"])
        if [message.sequence for message in stored] != list(range(len(said))):
            raise SupabaseMemoryError("The stored conversation is not what was said.", hint="Please report this.")
        console.print(f"All {len(said)} messages are there: in order, each once, in spite of the kill.\n")

        known = {each.question: each for each in transcript.questions()} if path is None else {}
        asked = questions or list(known)
        if not asked:
            ask = f'{_command("demo", "--transcript")} FILE --ask "…"'
            console.print(f"Ask about it with: {spell_out(ask)}", markup=False, highlight=False, soft_wrap=True)
            return
        _work(console, memory, len(said))
        told.tell(console)
        console.print()
        _board(console, memory)
        whole = sum(message.characters or 0 for message in stored), sum(message.tokens or 0 for message in stored)
        tally = _Tally(known, whole, _recent(memory), told)
        agent, alone = DemoAgent(memory, THREAD, model), DemoAgent(memory, THREAD, model, recall=None)
        console.print(f"[bold]Questions about what was said long ago[/bold] (model: {model._llm_type})\n")
        for place, question in enumerate(asked):
            if place == 0:
                pack = memory.conversation(THREAD).context(question, query=question, budget=BUDGET)
                drawn = chunk_timeline(memory.conversation(THREAD).chunks.list(), pack.recalled)
                tally.ask(console, agent, question)
                _prompt(console, pack.report(), tally.answers[0].own)
                console.print(f"{spell_out_lines(str(drawn))}\n", markup=False, highlight=False, soft_wrap=True)
            elif place < len(asked) - 1:
                tally.ask(console, agent, question)
            else:
                console.print("[bold]The last one with nothing recalled: the agent has to look itself[/bold]\n")
                tally.ask(console, alone, question)
        _point(console, memory)
    tally.show(console)
    command = _command("inspect", "--embedded", str(folder), "--user", USER)
    console.print("To see what the agent knew and why, in a browser:\n")
    console.print(f"{spell_out(command)}\n", markup=False, highlight=False, soft_wrap=True)
    console.print(f"The database stays in {folder}. To explore it, in Python:\n", highlight=False, soft_wrap=True)
    code = (
        "from langchain_supabase_memory import SupabaseMemory",
        f'memory = SupabaseMemory.embedded({json.dumps(str(folder), ensure_ascii=False)}, user_id="{USER}")',
        f'demo = memory.conversation("{THREAD}")',
        f"for each in demo.recall({_quoted(asked[0])}, limit=5).chunks: print(each.content)",
    )
    for line in code:  # as it can be copied: neither indented nor broken
        console.print(spell_out(line), markup=False, highlight=False, soft_wrap=True)
    console.print()


def _command(*arguments: str) -> str:
    """A command of ours as the reader's shell finds it.

    Its path is that of this process's environment: with `make demo` or `uv run` the shell knows it by no other name.
    """
    script = Path(sys.executable).with_name("supabase-memory.exe" if os.name == "nt" else "supabase-memory")
    here = Path.cwd()
    place = script.relative_to(here) if script.is_relative_to(here) else script
    named = [str(place)] if script.is_file() else [sys.executable, "-m", "langchain_supabase_memory.cli"]
    return shlex.join([*named, *arguments])


def open_page(console: Console, folder: Path, summarizer: Summarizer, embeddings: Embeddings | None) -> None:
    """Serve the inspector on what the demo has made, with the agent's own budget, until Ctrl-C.

    From a terminal it opens in a browser.

    Args:
        console: Where its address is shown.
        folder: Where the embedded database lies.
        summarizer: What writes the summaries.
        embeddings: What finds by meaning.

    Raises:
        MissingDependencyError: The extra `inspector` is not installed.
    """
    from langchain_supabase_memory.inspector import server

    def said(address: str) -> None:
        console.print(f"The inspector is on {address}", markup=False, highlight=False, soft_wrap=True)
        console.print("The address lets one browser in, once. Ctrl-C ends it.")
        if console.is_terminal:
            click.launch(address)

    with SupabaseMemory.from_conn_string(
        start_migrated(folder), user_id=USER, model=summarizer, embeddings=embeddings, budget=BUDGET, policy=POLICY
    ) as memory:
        server.serve(memory, port=0, write=True, actor=USER, echo=said)


class _Alerts(logging.Filter):
    """Keeps alerts about poor summaries out of the log, and explains them where they belong.

    Attributes:
        least: What share of its source the poorest summary so far holds; `None` if none was poor.
    """

    def __init__(self) -> None:
        super().__init__()
        self.least: float | None = None
        self._told = False

    def __enter__(self) -> _Alerts:
        logging.getLogger(alerts.__name__).addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(alerts.__name__).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record is about something else."""
        quality = getattr(record, "memory_quality", None)
        if quality is not None:
            self.least = min(quality, self.least if self.least is not None else 1.0)
        return quality is None

    def tell(self, console: Console) -> None:
        """Explain an alert once; the same can be said of every later one."""
        if self.least is not None and not self._told:
            self._told = True
            console.print(
                "[dim]  An alert, as an operator would get it: of the names, numbers, dates and questions of the "
                f"messages that a summary stands for, it holds {self.least:.0%}. That is little, for it is short and "
                "made of quotes. Nothing is lost: every message is stored, and recalled when it is asked for.[/dim]",
                highlight=False,
            )


@dataclass
class _Tally:
    """What questions took and brought.

    Attributes:
        known: The right answers, where they are known.
        whole: Characters and tokens of the whole history.
        recent: What an agent sees that has the same budget, and no memory.
        told: The alerts, to be told.
    """

    known: Mapping[str, transcript.Question]
    whole: tuple[int, int]
    recent: list[seen.Line]
    told: _Alerts
    answers: list[Answer] = field(default_factory=list)
    judged: list[tuple[bool, bool]] = field(default_factory=list)

    def ask(self, console: Console, agent: DemoAgent, question: str) -> None:
        """Ask, and show what came of it."""
        started = time.perf_counter()
        answer = agent.ask(question)
        seconds = time.perf_counter() - started
        self.answers.append(answer)
        mark = Text()
        if question in self.known:
            wanted = self.known[question].expect
            self.judged.append((wanted in answer.text, wanted in quote(self.recent, question)))
            mark = Text("✓ ", "green") if self.judged[-1][0] else Text("✗ ", "red")
        console.print(f"[cyan]{USER}:[/cyan] {escape(spell_out_lines(question))}", highlight=False)
        console.print(Text.assemble(mark, ("agent:", "magenta"), " ", spell_out_lines(answer.text)), highlight=False)
        console.print(f"[dim]  {_origin(answer)}[/dim]", highlight=False)
        calls = f" in {len(answer.sent)} calls" if len(answer.sent) > 1 else ""
        console.print(
            f"[dim]  {answer.characters:,} characters of the conversation sent{calls} instead of {self.whole[0]:,}; "
            f"{seconds * 1000:.0f} ms[/dim]",
            highlight=False,
        )
        self.told.tell(console)
        console.print()

    def show(self, console: Console) -> None:
        """What all of them took."""
        asked = len(self.answers)
        table = Table(title=f"What {asked} question{'s' * (asked != 1)} took", title_justify="left")
        for heading in ("of the conversation", "sent", "with the whole history each time", "saved"):
            table.add_column(heading, justify="right" if table.columns else "left")
        sent = sum(each.characters for each in self.answers), sum(each.tokens for each in self.answers)
        for name, used, history in zip(("characters", "tokens (approximate)"), sent, self.whole, strict=True):
            table.add_row(name, f"{used:,}", f"{history * asked:,}", f"{1 - used / (history * asked):.0%}")
        console.print(table)
        most = max(size for each in self.answers for size in each.sent)
        console.print(
            f"No prompt held more than {most:,} characters of the conversation, of {BUDGET.about_characters:,} that "
            f"were allowed. Beside it each held the agent's own instructions, {self.answers[0].own:,} characters.",
            highlight=False,
        )
        if self.judged:
            right, blind = (sum(each) for each in zip(*self.judged, strict=True))
            console.print(
                f"Right answers: [bold]{right} of {len(self.judged)}[/bold]; with only the newest "
                f"{BUDGET.about_characters:,} characters and no memory: {blind} of {len(self.judged)}.",
                highlight=False,
            )
        console.print()


def _quoted(question: str) -> str:
    """The beginning of a question as Python would have it."""
    return repr(textwrap.shorten(question, 50, placeholder=""))


def _replay(console: Console, conn_string: str, said: list[transcript.Said], path: Path | None) -> None:
    """Store the transcript from another process, killing it in the middle."""
    half = len(said) // 2
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("messages"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("Process 1 stores the conversation", total=len(said))
        for number, limit in ((1, half), (2, len(said))):
            progress.update(task, description=f"Process {number} stores the conversation")
            command = [sys.executable, "-c", _REPLAY, conn_string, str(path or "")]
            # In a session of its own Ctrl-C does not reach it: this process ends it, and says whatever there is to say.
            with (
                tempfile.TemporaryFile("w+") as said_aside,
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=said_aside, text=True, start_new_session=True
                ) as process,
            ):
                assert process.stdout is not None
                try:
                    for line in process.stdout:
                        progress.update(task, completed=int(line))
                        if number == 1 and int(line) >= limit:
                            process.kill()
                            break
                except BaseException:
                    process.kill()
                    raise
                process.wait()
                said_aside.seek(0)
                aside = said_aside.read()
            if number == 1:
                progress.console.print(f"Process 1 was killed (kill -9) after {limit} messages. Process 2 takes over.")
            elif process.returncode != 0:
                progress.console.print(aside, markup=False, highlight=False)
                raise SupabaseMemoryError("The process that stores the conversation failed.", hint="See above.")


def _origin(answer: Answer) -> str:
    """Where an answer came from."""
    line = answer.source
    if line is None:
        return "from nothing that it saw"
    if line.part == "recalled":
        return f"from message {line.message} of {line.day}, one of {answer.recalled} recalled"
    if line.part == "passage":
        return f"from message {line.message} of {line.day}, found with search_conversation_history"
    return "from the summary" if line.part == "summary" else "from the newest messages"


def _point(console: Console, memory: SupabaseMemory) -> None:
    """Resolve what a user may point at."""
    for text in ("yung una nga ulit", "your previous answer", "give me a second"):
        found = memory.conversation(THREAD).resolve(text)
        meant = "no turn"
        if found is not None:
            meant = f"turn {found.turn.number}: {textwrap.shorten(found.turn.user_query, 60, placeholder=' …')}"
        console.print(f"“{text}” points at [cyan]{escape(spell_out(meant))}[/cyan]", highlight=False)
    console.print()


def _recent(memory: SupabaseMemory) -> list[seen.Line]:
    """What an agent sees that has the same budget, and no memory."""
    pack = memory.conversation(THREAD).context(budget=BUDGET, policy=SummaryPolicy(mode="background"))
    return seen.lines([entry.message for entry in pack.fitted.recent])


def _work(console: Console, memory: SupabaseMemory, messages: int) -> None:
    """Let a worker do what is due, and show that nothing falls between."""
    started = time.perf_counter()
    with console.status("A worker indexes, summarizes and keeps the board …"):
        done = run(_drained(memory))
    studio = memory.conversation(THREAD)
    status = studio.work.status()
    if status is not None and status.error is not None:
        console.print(f"The worker failed ({status.error}); nothing is lost, the next try comes later.")
    how = "words" if memory.embeddings is None else f"words, and by meaning with {memory.embeddings.name}"
    episodes = len({chunk.episode for chunk in studio.chunks.list()})
    console.print(
        f"A worker did what was due in {time.perf_counter() - started:.1f} s: {done.chunks} chunks in {episodes} "
        f"episodes of talk, to be recalled by {how}; {done.summaries} segments of the rolling summary; the board.",
        highlight=False,
    )
    coverage = studio.coverage(budget=BUDGET)
    verbatim = sum(each.to_sequence - each.from_sequence + 1 for each in coverage.ranges if each.state == "verbatim")
    covered = 0 if status is None else status.summarized_through + 1
    console.print(
        f"Of {messages} messages {verbatim} are verbatim in the next prompt and {covered} are covered by the summary; "
        f"{'nothing fell between' if coverage.complete else 'some are omitted'}.",
        highlight=False,
    )


async def _drained(memory: SupabaseMemory) -> WorkerStats:
    async with memory:
        return await Worker(memory).drain()


def _board(console: Console, memory: SupabaseMemory) -> None:
    """The board, shortened: its summary, then a few items of each kind with the message that says so."""
    board = memory.conversation(THREAD).board.read()
    if board.is_empty:
        return
    console.print("[bold]The board: what is known by now, in short[/bold]")
    if board.summary:
        console.print(spell_out_lines(_beginning(board.summary)), markup=False, highlight=False, style="default")
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(style="dim", no_wrap=True, justify="right")
    for name, items in (
        ("facts", board.facts),
        ("to do", board.action_items),
        ("open questions", board.pending_questions),
    ):
        for item in sorted(items, key=lambda each: (-each.importance, each.sequences))[:_SHOWN]:
            text = textwrap.shorten(spell_out(item.text), _LONGEST, placeholder=" …")
            table.add_row(name, Text(text), f"message {item.sequences[0]}" if item.sequences else "")
            name = ""
        if len(items) > _SHOWN:
            table.add_row("", f"[dim]and {len(items) - _SHOWN} more[/dim]", "")
        elif not items:
            table.add_row(name, "[dim]none[/dim]", "")
    named = sorted(board.entities, key=lambda each: (_TYPES.index(each.type), each.sequences))
    for name, items in (("who, where, when", named), ("topics", board.topics)):
        if items:
            names = Text(spell_out(", ".join(each.text for each in items[:_NAMES])))
            table.add_row(name, names.append(f" and {len(items) - _NAMES} more" * (len(items) > _NAMES), "dim"))
    console.print(table, "")


def _beginning(text: str) -> str:
    """The first lines of a text, and "…" where there are more."""
    lines = text.splitlines()
    shown = [textwrap.shorten(lines[0], _SUMMARY, placeholder=" …")]
    for line in lines[1:]:
        if sum(map(len, shown)) + len(line) > _SUMMARY:
            break
        shown.append(line)
    is_whole = len(shown) == len(lines)
    return "\n".join(shown if is_whole else [*shown, "…"])


def _prompt(console: Console, report: ContextReport, own: int) -> None:
    """What a prompt was made of."""
    left = [f"messages {first} to {last} are {why}" for first, last, why in report.omitted]
    caption = "\n".join(left) or "nothing omitted: what is not there word for word is covered by the summary"
    table = Table(title="What was in that prompt", title_justify="left", caption=caption, caption_justify="left")
    table.add_column("part")
    table.add_column("characters", justify="right")
    table.add_column("what it is")
    for section in report.sections:
        table.add_row(section.name, f"{section.characters:,}", section.covers)
    table.add_section()
    table.add_row("the conversation", f"{report.characters:,}", f"of at most {BUDGET.about_characters:,}")
    table.add_row("instructions", f"{own:,}", "the agent's own")
    console.print(table, "")
