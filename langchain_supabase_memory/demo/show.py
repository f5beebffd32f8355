"""The story, on the terminal: a process stores a long conversation, is killed, goes on, and an agent is questioned."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.panel import Panel
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from langchain_supabase_memory.demo import replay, transcript
from langchain_supabase_memory.demo.agent import BUDGET, DemoAgent
from langchain_supabase_memory.demo.model import quote
from langchain_supabase_memory.demo.replay import THREAD, USER
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.memory import SupabaseMemory
from langchain_supabase_memory.settings import DEFAULT_DIMENSIONS, SummaryPolicy
from langchain_supabase_memory.transports.embedded import start_migrated

if TYPE_CHECKING:
    from pathlib import Path

    from langchain_core.language_models import BaseChatModel
    from rich.console import Console

    from langchain_supabase_memory.summary_model import Summariser


def show(
    console: Console,
    folder: Path,
    model: BaseChatModel,
    summariser: Summariser,
    *,
    path: Path | None,
    questions: list[str] | None,
) -> None:
    """Run the demo.

    Args:
        console: Where it is shown.
        folder: Where the embedded database lies; it stays there to explore.
        model: The agent's chat model.
        summariser: What writes the summaries.
        path: A transcript of the user's; the bundled one by default.
        questions: What to ask; the bundled transcript's questions by default.

    Raises:
        SupabaseMemoryError: The transcript is none, or the database cannot be started.
    """
    said = transcript.load(path)
    console.print(Panel.fit("An agent that remembers, on a Postgres of its own", style="bold"))
    with console.status("Starting the embedded Postgres and making the schema …"):
        conn_string = start_migrated(folder, DEFAULT_DIMENSIONS)
    with SupabaseMemory.from_conn_string(conn_string, user_id=USER, model=summariser) as memory:
        memory.forget(thread_id=THREAD)
        _replay(console, conn_string, said, path)
        stored = memory.read(thread_id=THREAD, columns=["characters", "tokens", "text"])
        if [message.sequence for message in stored] != list(range(len(said))):
            raise SupabaseMemoryError("The stored conversation is not what was said.", hint="Please report this.")
        console.print(f"All {len(said)} messages are there: in order, each once, in spite of the kill.\n")

        known = {each.question: each for each in transcript.questions()} if path is None else {}
        asked = questions or list(known)
        if not asked:
            console.print('Ask about it with: supabase-memory demo --transcript FILE --ask "…"')
            return
        _summarise(console, memory, len(said))
        agent = DemoAgent(memory, THREAD, model)
        console.print(f"[bold]Questions about what was said long ago[/bold] (model: {model._llm_type})\n")
        recent = _recent(memory)
        full = sum(message.characters or 0 for message in stored), sum(message.tokens or 0 for message in stored)
        right = blind = characters = tokens = whole_characters = whole_tokens = 0
        for question in asked:
            started = time.perf_counter()
            answer = agent.ask(question)
            characters, tokens = characters + answer.characters, tokens + answer.tokens
            whole_characters, whole_tokens = whole_characters + full[0], whole_tokens + full[1]
            expected = known.get(question)
            mark = ""
            if expected is not None:
                is_right = expected.expect in answer.text
                right += is_right
                blind += expected.expect in quote(recent, question)
                mark = "[green]✓[/green] " if is_right else "[red]✗[/red] "
            console.print(f"[cyan]{USER}:[/cyan] {question}", highlight=False)
            console.print(f"{mark}[magenta]agent:[/magenta] ", end="", highlight=False)
            console.print(answer.text, markup=False, highlight=False, style="default")
            console.print(
                f"[dim]  {answer.characters:,} characters sent, the whole history would be {full[0]:,}; "
                f"{(time.perf_counter() - started) * 1000:.0f} ms[/dim]\n",
                highlight=False,
            )
        _point(console, memory)
        console.print(memory.context(thread_id=THREAD, budget=BUDGET).report(), "")
    _gains(console, len(asked), len(known), right, blind, (characters, whole_characters), (tokens, whole_tokens))
    console.print(f"The database stays in {folder}. To explore it, in Python:", highlight=False)
    console.print(f'  memory = SupabaseMemory.embedded("{folder}", user_id="{USER}")', highlight=False, soft_wrap=True)
    console.print(f'  memory.read(thread_id="{THREAD}", last=5)\n', highlight=False)


def _replay(console: Console, conn_string: str, said: list[transcript.Said], path: Path | None) -> None:
    """Store the transcript from another process, killing it in the middle."""
    half = len(said) // 2
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("messages"))
    with Progress(*columns, TimeElapsedColumn(), console=console) as progress:
        task = progress.add_task("Process 1 stores the conversation", total=len(said))
        for number, limit in ((1, half), (2, len(said))):
            progress.update(task, description=f"Process {number} stores the conversation")
            with subprocess.Popen(
                [sys.executable, "-m", replay.__name__, conn_string, str(path or "")], stdout=subprocess.PIPE, text=True
            ) as process:
                assert process.stdout is not None
                for line in process.stdout:
                    progress.update(task, completed=int(line))
                    if number == 1 and int(line) >= limit:
                        process.send_signal(signal.SIGKILL)
                        break
            if number == 1:
                progress.console.print(f"Process 1 was killed (kill -9) after {limit} messages. Process 2 takes over.")
            elif process.returncode != 0:
                raise SupabaseMemoryError("The process that stores the conversation failed.", hint="See above.")


def _point(console: Console, memory: SupabaseMemory) -> None:
    """Resolve what a user may point at."""
    for text in ("yung una nga ulit", "your previous answer", "give me a second"):
        found = memory.resolve(text, thread_id=THREAD)
        meant = "no turn" if found is None else f"turn {found.turn.number}: {found.turn.user_query[:60]}"
        console.print(f"“{text}” points at [cyan]{escape(meant)}[/cyan]", highlight=False)
    console.print()


def _recent(memory: SupabaseMemory) -> list[str]:
    """What an agent sees that has the same budget, and no memory."""
    pack = memory.context(thread_id=THREAD, budget=BUDGET, policy=SummaryPolicy(mode="background"))
    return [str(entry.message.text) for entry in pack.fitted.recent]


def _summarise(console: Console, memory: SupabaseMemory, messages: int) -> None:
    """Make the rolling summary, and show that nothing falls between."""
    with console.status("Summarising what is older than the newest messages …"):
        policy = SummaryPolicy(input_characters=8_000).within(BUDGET)
        made = memory.summarise(thread_id=THREAD, policy=policy)
    if made.failed is not None:
        console.print(f"The summary failed ({made.failed}); nothing is lost, the next try comes later.")
    coverage = memory.coverage(thread_id=THREAD, budget=BUDGET)
    verbatim = sum(each.to_sequence - each.from_sequence + 1 for each in coverage.ranges if each.state == "verbatim")
    console.print(
        f"The rolling summary: {len(made.segments)} segments, {made.model_calls} model calls. Of {messages} messages "
        f"{verbatim} are verbatim in the next prompt and {made.through_sequence + 1} are covered by the summary; "
        f"{'nothing fell between' if coverage.complete else 'some are omitted'}.\n",
        highlight=False,
    )


def _gains(
    console: Console,
    asked: int,
    known: int,
    right: int,
    blind: int,
    characters: tuple[int, int],
    tokens: tuple[int, int],
) -> None:
    table = Table(title=f"What {asked} questions took", title_justify="left")
    for heading in ("", "sent", "with the whole history each time", "saved"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, (sent, whole) in (("characters", characters), ("tokens (approximate)", tokens)):
        table.add_row(name, f"{sent:,}", f"{whole:,}", f"{1 - sent / whole:.0%}")
    console.print(table)
    if known:
        console.print(
            f"Right answers: [bold]{right} of {known}[/bold]; "
            f"with only the newest {BUDGET.about_characters:,} characters and no memory: {blind} of {known}.\n",
            highlight=False,
        )
