"""The demo on the terminal: a process that stores a conversation is killed and resumed; an agent answers questions."""

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
from typing import TYPE_CHECKING, Final

import click
from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table
from rich.text import Text

from langchain_supabase_memory.adapters.telemetry import alerts
from langchain_supabase_memory.adapters.transports.embedded import start_migrated
from langchain_supabase_memory.adapters.transports.event_loop import run
from langchain_supabase_memory.cli.demo import replay
from langchain_supabase_memory.cli.demo.agent import BUDGET, POLICY, AgentAnswer, DemoAgent
from langchain_supabase_memory.cli.demo.replay import THREAD, USER
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.language.extractive.quotes import HEADER
from langchain_supabase_memory.language.messages.invisible import spell_out, spell_out_lines
from langchain_supabase_memory.memory.config import MemoryConfig
from langchain_supabase_memory.memory.memory import SupabaseMemory
from langchain_supabase_memory.operations.boards.kinds import SENTENCES_FIRST
from langchain_supabase_memory.operations.recall.chunk_timeline import chunk_timeline
from langchain_supabase_memory.settings import SummaryPolicy
from langchain_supabase_memory.testing import prompt_view, transcript
from langchain_supabase_memory.testing.quoting_model import quote
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
"""The program that stores the conversation."""

_MAX_ITEMS = 5
"""The maximum number of items of each kind of the board."""

_MAX_ITEM_LENGTH = 110
"""The maximum number of characters of an item."""

_MAX_NAMES = 12
"""The maximum number of people, places and topics of the board."""

_MAX_SUMMARY = 280
"""The approximate maximum number of characters of the board's summary."""

_TYPE_ORDER = ("person", "place", "organization", "other", "date", None)

_KIND_NAMES = {"action": "to do", "question": "open questions", "entity": "who, where, when"}
"""The demo's names of item kinds, if they differ from the headings."""


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
        console: The output console.
        folder: The folder of the embedded database, which is not deleted.
        model: The agent's chat model.
        summarizer: The model that writes the summaries.
        path: The user's transcript; by default the bundled one.
        questions: The questions; by default those of the bundled transcript.
        embeddings: The embedder for search by meaning; without one, keyword search.

    Raises:
        SupabaseMemoryError: The transcript cannot be read, or the database cannot be started.
    """
    lines = transcript.load(path)
    console.print(Panel.fit("An agent that remembers, on a Postgres of its own", style="bold"))
    with console.status("Starting the embedded Postgres and making the schema …"):
        conn_string = start_migrated(folder)
    with (
        _Alerts() as alert_filter,
        _memory(conn_string, summarizer, embeddings) as memory,
    ):
        memory.conversation(THREAD).forget()
        _replay(console, conn_string, lines, path)
        stored = memory.conversation(THREAD).read(columns=["characters", "tokens", "text"])
        if [message.sequence for message in stored] != list(range(len(lines))):
            raise SupabaseMemoryError(
                "The stored conversation differs from the transcript.", hint="Please report this."
            )
        console.print(f"All {len(lines)} messages are there: in order, each once, in spite of the kill.\n")

        known = {each.question: each for each in transcript.questions()} if path is None else {}
        queries = questions or list(known)
        if not queries:
            ask = f'{_command("demo", "--transcript")} FILE --ask "…"'
            console.print(Text(f"Ask about it with: {spell_out(ask)}"), soft_wrap=True)
            return
        _run_worker(console, memory, len(lines))
        alert_filter.explain(console)
        console.print()
        _show_board(console, memory)
        sizes = sum(message.characters or 0 for message in stored), sum(message.tokens or 0 for message in stored)
        tally = _Scores(known, sizes, _recent_lines(memory), alert_filter)
        agent, without_recall = DemoAgent(memory, THREAD, model), DemoAgent(memory, THREAD, model, recall=None)
        console.print(f"[bold]Questions about what was said long ago[/bold] (model: {model._llm_type})\n")
        for index, question in enumerate(queries):
            if index == 0:
                pack = memory.conversation(THREAD).context(question, query=question, budget=BUDGET)
                chart = chunk_timeline(memory.conversation(THREAD).chunks.list(), pack.recalled)
                tally.ask(console, agent, question)
                _show_prompt(console, pack.report(), tally.answers[0].own)
                console.print(f"{spell_out_lines(str(chart))}\n", markup=False, soft_wrap=True)
            elif index < len(queries) - 1:
                tally.ask(console, agent, question)
            else:
                console.print("[bold]The last one with nothing recalled: the agent has to look itself[/bold]\n")
                tally.ask(console, without_recall, question)
        _show_references(console, memory)
    tally.show(console)
    command = _command("inspect", "--embedded", str(folder), "--user", USER)
    console.print("To see what the agent knew and why, in a browser:\n")
    console.print(Text(f"{spell_out(command)}\n"), soft_wrap=True)
    console.print(f"The database stays in {folder}. To explore it, start this Python, and copy the lines:\n")
    console.print(Text(f"{spell_out(shlex.quote(_short_path(Path(sys.executable))))}\n"), soft_wrap=True)
    question = textwrap.shorten(queries[0], 50, placeholder="")
    code = (
        "from langchain_supabase_memory import SupabaseMemory",
        f'memory = SupabaseMemory.embedded({json.dumps(str(folder), ensure_ascii=False)}, user_id="{USER}")',
        f'demo = memory.conversation("{THREAD}")',
        f"for each in demo.recall({question!r}, limit=5).chunks: print(each.content)",
    )
    for line in code:  # for copying: neither indented nor wrapped
        console.print(Text(spell_out(line)), soft_wrap=True)
    console.print()


def _command(*arguments: str) -> str:
    """Format a command so that the user's shell can find it.

    Under `make demo` or `uv run`, the shell finds it only by its path in this process's environment.
    """
    script = Path(sys.executable).with_name("supabase-memory.exe" if os.name == "nt" else "supabase-memory")
    program = [_short_path(script)] if script.is_file() else [sys.executable, "-m", "langchain_supabase_memory.cli"]
    return shlex.join([*program, *arguments])


def _short_path(program: Path) -> str:
    """Return a program's path, from the current folder if it lies there."""
    here = Path.cwd()
    return str(program.relative_to(here) if program.is_relative_to(here) else program)


def open_page(console: Console, folder: Path, summarizer: Summarizer, embeddings: Embeddings | None) -> None:
    """Serve the inspector on the demo's database until Ctrl-C, with the agent's budget. In a terminal, open a browser.

    Args:
        console: The console that shows its address.
        folder: The folder of the embedded database.
        summarizer: The model that writes the summaries.
        embeddings: The embedder for search by meaning.

    Raises:
        MissingDependencyError: The extra `inspector` is not installed.
    """
    from langchain_supabase_memory.inspector import server

    def announce(address: str) -> None:
        console.print(Text(f"The inspector is on {address}"), soft_wrap=True)
        console.print("The address lets one browser in, once. Ctrl-C ends it.")
        if console.is_terminal:
            click.launch(address)

    with _memory(start_migrated(folder), summarizer, embeddings) as memory:
        server.serve(memory, port=0, write=True, actor=USER, echo=announce)


def _memory(conn_string: str, summarizer: Summarizer, embeddings: Embeddings | None) -> SupabaseMemory:
    config = MemoryConfig(policy=POLICY)
    return SupabaseMemory.from_conn_string(
        conn_string, user_id=USER, model=summarizer, embeddings=embeddings, budget=BUDGET, config=config
    )


class _Alerts(logging.Filter):
    """Keep alerts about poor summaries out of the log, and explain them in the demo.

    Attributes:
        lowest: The lowest quality of a summary so far; `None` without an alert.
    """

    def __init__(self) -> None:
        super().__init__()
        self.lowest: float | None = None
        self._is_explained = False

    def __enter__(self) -> _Alerts:
        logging.getLogger(alerts.__name__).addFilter(self)
        return self

    def __exit__(self, *_: object) -> None:
        logging.getLogger(alerts.__name__).removeFilter(self)

    def filter(self, record: logging.LogRecord) -> bool:
        """Return whether a record is not such an alert."""
        quality = getattr(record, "memory_quality", None)
        if quality is not None:
            self.lowest = min(quality, self.lowest if self.lowest is not None else 1.0)
        return quality is None

    def explain(self, console: Console) -> None:
        """Explain the first alert."""
        if self.lowest is not None and not self._is_explained:
            self._is_explained = True
            console.print(
                f"[yellow]An operator gets an alert here:[/yellow] one summary repeats only {self.lowest:.0%} of the "
                "names, numbers, dates and questions of its messages. Without a language model it is a few quotes. "
                "Nothing is lost: every message is stored, and the answers below come from recall.",
            )


@dataclass
class _Scores:
    """The costs and the answers of the questions.

    Attributes:
        known: The questions with a known answer.
        history_sizes: The characters and tokens of the full history.
        recent: The prompt of an agent with the same budget and no memory.
        alerts: The alerts to explain.
        answers: The answers so far.
        verdicts: Whether each answer is correct, with and without the memory.
    """

    known: Mapping[str, transcript.DemoQuestion]
    history_sizes: tuple[int, int]
    recent: list[prompt_view.PromptLine]
    alerts: _Alerts
    answers: list[AgentAnswer] = field(default_factory=list)
    verdicts: list[tuple[bool, bool]] = field(default_factory=list)

    def ask(self, console: Console, agent: DemoAgent, question: str) -> None:
        """Ask a question and print the answer."""
        started = time.perf_counter()
        answer = agent.ask(question)
        seconds = time.perf_counter() - started
        self.answers.append(answer)
        mark = Text()
        if question in self.known:
            expected = self.known[question].expect
            self.verdicts.append((expected in answer.text, expected in quote(self.recent, question)))
            mark = Text("✓ ", "green") if self.verdicts[-1][0] else Text("✗ ", "red")
        console.print(f"[cyan]{USER}:[/cyan] {escape(spell_out_lines(question))}")
        console.print(Text.assemble(mark, ("agent:", "magenta"), " ", spell_out_lines(answer.text)))
        console.print(f"[dim]  {_origin(answer)}[/dim]")
        calls = f" in {len(answer.sent)} calls" if len(answer.sent) > 1 else ""
        console.print(
            f"[dim]  {answer.characters:,} characters of the conversation sent{calls} instead of "
            f"{self.history_sizes[0]:,}; {seconds * 1000:.0f} ms[/dim]"
        )
        self.alerts.explain(console)
        console.print()

    def show(self, console: Console) -> None:
        """Print the costs of all questions."""
        count = len(self.answers)
        table = Table(title=f"What {pluralize(count, 'question')} took", title_justify="left")
        for heading in ("of the conversation", "sent", "with the full history each time", "saved"):
            table.add_column(heading, justify="right" if table.columns else "left")
        sent = sum(each.characters for each in self.answers), sum(each.tokens for each in self.answers)
        for name, used, history in zip(("characters", "tokens (approximate)"), sent, self.history_sizes, strict=True):
            table.add_row(name, f"{used:,}", f"{history * count:,}", f"{1 - used / (history * count):.0%}")
        console.print(table)
        largest = max(size for each in self.answers for size in each.sent)
        console.print(
            f"No prompt held more than {largest:,} characters of the conversation, of {BUDGET.about_characters:,} that "
            f"were allowed. Beside it each held the agent's own instructions, {self.answers[0].own:,} characters.",
        )
        if self.verdicts:
            right, blind = (sum(each) for each in zip(*self.verdicts, strict=True))
            console.print(
                f"Right answers: [bold]{right} of {len(self.verdicts)}[/bold]; with only the newest "
                f"{BUDGET.about_characters:,} characters and no memory: {blind} of {len(self.verdicts)}.",
            )
        console.print()


def _replay(console: Console, conn_string: str, lines: list[transcript.DemoLine], path: Path | None) -> None:
    """Store the transcript from another process, which is killed in the middle."""
    half = len(lines) // 2
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("messages"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("Process 1 stores the conversation", total=len(lines))
        for number, limit in ((1, half), (2, len(lines))):
            progress.update(task, description=f"Process {number} stores the conversation")
            command = [sys.executable, "-c", _REPLAY, conn_string, str(path or "")]
            # In its own session, Ctrl-C does not reach it; this process kills it.
            with (
                tempfile.TemporaryFile("w+") as error_file,
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=error_file, text=True, start_new_session=True
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
                error_file.seek(0)
                errors = error_file.read()
            if number == 1:
                progress.console.print(f"Process 1 was killed (kill -9) after {limit} messages. Process 2 takes over.")
            elif process.returncode != 0:
                progress.console.print(errors, markup=False)
                raise SupabaseMemoryError("The process that stores the conversation failed.", hint="See above.")


_PARTS: Final[Mapping[prompt_view.PromptPart, str]] = {
    "summary": "summary",
    "recent": "newest messages",
    "profile": "profile",
    "board": "board",
    "shared": "boards that are shared",
    "turn": "turn that the question points at",
}
"""What an answer quotes, in words."""


def _origin(answer: AgentAnswer) -> str:
    """Describe the source of an answer."""
    line = answer.source
    if line is None:
        return "from nothing that it saw"
    if line.part == "recalled":
        return f"from message {line.message} of {line.day}, one of {answer.recalled} recalled"
    if line.part == "passage":
        return f"from message {line.message} of {line.day}, found with search_conversation_history"
    return f"from the {_PARTS[line.part]}"


def _show_references(console: Console, memory: SupabaseMemory) -> None:
    """Print how references by a user are resolved."""
    for text in ("yung una nga ulit", "your previous answer", "give me a second"):
        reference = memory.conversation(THREAD).resolve(text)
        target = "no turn"
        if reference is not None:
            target = (
                f"turn {reference.turn.number}: {textwrap.shorten(reference.turn.user_query, 60, placeholder=' …')}"
            )
        console.print(f"“{text}” points at [cyan]{escape(spell_out(target))}[/cyan]")
    console.print()


def _recent_lines(memory: SupabaseMemory) -> list[prompt_view.PromptLine]:
    """Get the prompt of an agent with the same budget and no memory."""
    pack = memory.conversation(THREAD).context(budget=BUDGET, policy=SummaryPolicy(mode="background"))
    return prompt_view.lines([entry.message for entry in pack.fitted.recent])


def _run_worker(console: Console, memory: SupabaseMemory, messages: int) -> None:
    """Let a worker process the due work, and print what the next prompt covers."""
    started = time.perf_counter()
    with console.status("A worker indexes, summarizes and keeps the board …"):
        tally = run(_drain(memory))
    studio = memory.conversation(THREAD)
    status = studio.work.status()
    if status is not None and status.error is not None:
        console.print(f"The worker failed ({status.error}); nothing is lost, the next try comes later.")
    how = (
        "words"
        if memory._services.embeddings is None
        else f"words, and by meaning with {memory._services.embeddings.name}"
    )
    episodes = len({chunk.episode for chunk in studio.chunks.list()})
    console.print(
        f"A worker did what was due in {time.perf_counter() - started:.1f} s: {tally.chunks} chunks in {episodes} "
        f"episodes of talk, to be recalled by {how}; {tally.summaries} segments of the rolling summary; the board.",
    )
    coverage = studio.coverage(budget=BUDGET)
    verbatim = sum(each.to_sequence - each.from_sequence + 1 for each in coverage.ranges if each.state == "verbatim")
    covered = 0 if status is None else status.summarized_through + 1
    console.print(
        f"Of {messages} messages {verbatim} are verbatim in the next prompt and {covered} are covered by the summary; "
        f"{'nothing fell between' if coverage.complete else 'some are omitted'}.",
    )


async def _drain(memory: SupabaseMemory) -> WorkerStats:
    async with memory:
        return await Worker(memory).drain()


def _show_board(console: Console, memory: SupabaseMemory) -> None:
    """Print the board: its summary, then a few items of each kind with their message."""
    board = memory.conversation(THREAD).board.read()
    if board.is_empty:
        return
    console.print("[bold]The board: what is known by now, each item with the message that says it[/bold]\n")
    if board.summary and not board.summary.startswith(HEADER):  # quotes stand among the items already
        console.print(spell_out_lines(_shorten_lines(board.summary)), markup=False, style="default")
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1)
    table.add_column(style="dim", no_wrap=True, justify="right")
    for kind in SENTENCES_FIRST:
        name, items = _KIND_NAMES.get(kind.kind, kind.heading.lower()), board.of_kind(kind.kind)
        if kind.is_name:
            ordered = (
                sorted(items, key=lambda each: (_TYPE_ORDER.index(each.type), each.sequences)) if kind.types else items
            )
            if ordered:
                names = Text(spell_out(", ".join(each.text for each in ordered[:_MAX_NAMES])))
                table.add_row(
                    name, names.append(f" and {len(items) - _MAX_NAMES} more" * (len(items) > _MAX_NAMES), "dim")
                )
            continue
        for item in sorted(items, key=lambda each: (-each.importance, each.sequences))[:_MAX_ITEMS]:
            said = item.text.removeprefix("User: ").replace("Assistant: ", "agent: ", 1)
            text = textwrap.shorten(spell_out(said), _MAX_ITEM_LENGTH, placeholder=" …")
            table.add_row(name, Text(text), f"message {item.sequences[0]}" if item.sequences else "")
            name = ""
        if len(items) > _MAX_ITEMS:
            table.add_row("", f"[dim]and {len(items) - _MAX_ITEMS} more[/dim]", "")
        elif not items:
            table.add_row(name, "[dim]none[/dim]", "")
    console.print(table, "")


def _shorten_lines(text: str) -> str:
    """Cut a text after its first lines, with "…" if it continues."""
    lines = text.splitlines()
    result = [textwrap.shorten(lines[0], _MAX_SUMMARY, placeholder=" …")]
    for line in lines[1:]:
        if sum(map(len, result)) + len(line) > _MAX_SUMMARY:
            break
        result.append(line)
    is_complete = len(result) == len(lines)
    return "\n".join(result if is_complete else [*result, "…"])


def _show_prompt(console: Console, report: ContextReport, own: int) -> None:
    """Print the parts of a prompt."""
    omissions = [f"messages {first} to {last} are {reason}" for first, last, reason in report.omitted]
    caption = "\n".join(omissions) or "nothing omitted: the summary covers every message that is not sent verbatim"
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
