"""Terminal behavior: a worker's status line, Ctrl-C, closed pipes, completion."""

from __future__ import annotations

import os
import re
import shutil
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.messages import HumanMessage
from rich.cells import cell_len

from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.cli.application import commands
from tests.cli.running import PROGRAM, Terminal, piped, run, surroundings
from tests.each_case import each_case
from tests.services.postgres import Cluster


def speak(conn_string: str, *threads: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id="maya") as memory:
        for thread_id in threads:
            memory.conversation(thread_id).append([HumanMessage(f"Hello from {thread_id}")])


# The line of a worker


@each_case("columns", [80, 40])
def test_a_worker_has_one_living_line(own_address: str, columns: int) -> None:
    speak(own_address, "one", "two")
    with Terminal("worker", "--database-url", own_address, columns=columns) as terminal:
        terminal.until(r"2 done · 0 due · lag 0 s")
        speak(own_address, "three")
        terminal.until(r"3 done · 0 due")
        assert "A piece of work is done" not in terminal.text
        terminal.type("\x03")
        assert terminal.end() == 0
        drawn = re.split(r"\r|\n", terminal.text)
    lines = [line for line in drawn if " done · " in line]
    assert len(lines) > 3
    assert "\n" not in terminal.text[terminal.text.index(" done · ") : terminal.text.index("^C")], "in its place"
    assert max(map(cell_len, lines)) <= columns
    assert any(" calls" in line for line in lines)
    assert "Stopping after the running jobs finish. Press Ctrl-C again to exit at once." in terminal.text
    assert terminal.lines[-1].endswith("3 done.")


def test_the_line_follows_the_width_and_makes_place_for_the_log(own_address: str, tmp_path: Path) -> None:
    (tmp_path / "telling.py").write_text(
        "import logging\n"
        "from langchain_supabase_memory import SupabaseMemory\n"
        "logging.basicConfig(format='mine: %(message)s', level=logging.INFO)\n"
        f"memory = SupabaseMemory.from_conn_string({own_address!r})\n"
    )
    with Terminal("worker", "--app", "telling:memory", folder=tmp_path) as terminal:
        terminal.until(" calls")
        terminal.resize(24)
        terminal.until(r"0 due[^\r\n]*…", after=len(terminal.text))
        after = len(terminal.text)
        speak(own_address, "logged")
        terminal.until("1 done", after=after)
        shown = terminal.text[after:]
        assert max(len(line) for line in re.split(r"[\r\n]+", shown) if " · " in line) <= 24
        assert re.search(r"mine: A piece of work is done\r\n", shown)
        assert not re.search(r"[0-9a-z] ?mine: ", shown), "a line of the log begins where a line begins"
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == 0


def test_elsewhere_a_worker_writes_lines(own_address: str) -> None:
    speak(own_address, "in a pipe")
    done = piped("worker", "--database-url", own_address, "--drain")
    assert done.returncode == 0
    assert re.search(r"INFO +\S+: A piece of work is done outcome=done", done.stderr)
    assert "1 done" in done.stdout
    assert not {"\r", "\x1b"} & set(done.stderr + done.stdout)


# Ctrl-C


@pytest.fixture
def silent() -> Iterator[socket.socket]:
    """A server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(60)
        yield server


@pytest.mark.parametrize(
    "command", ["cleanup", "doctor", "migrate", "retry", "status", "unreadable", "worker --drain", "worker"]
)
def test_ctrl_c_ends_a_command_that_waits(silent: socket.socket, command: str) -> None:
    address = f"postgresql://u:secret@127.0.0.1:{silent.getsockname()[1]}/db"
    with Terminal(*command.split(), "--database-url", address) as terminal:
        if command.startswith("worker"):
            terminal.until("0 done")
        else:
            terminal.until("…")
            # It connects only after its imports; a Ctrl-C in the middle of an import may be lost.
            silent.accept()[0].detach()
        terminal.type("\x03")
        if command.startswith("worker"):
            terminal.until("Ctrl-C")
            terminal.type("\x03")
        assert terminal.end() == 130, terminal.text
        assert "Traceback" not in terminal.text
        assert terminal.text.count("Stopped by Ctrl-C.") == 1
        assert "secret" not in terminal.text


@pytest.mark.postgres
@pytest.mark.slow
def test_ctrl_c_ends_the_demo_and_the_process_beside_it(tmp_path: Path) -> None:
    with Terminal("demo", "--path", str(tmp_path / "postgres")) as terminal:
        terminal.until("stores the conversation")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
        assert terminal.lines[-1].endswith("Stopped by Ctrl-C.")


SLOW = """
import asyncio, sys
from langchain_supabase_memory import MemoryConfig, SummaryPolicy, SupabaseMemory
async def answer(_):
    print("The model is asked.", file=sys.stderr)
    await asyncio.sleep(3600)
config = MemoryConfig(policy=SummaryPolicy(messages=4, keep_messages=1))
memory = SupabaseMemory.from_conn_string({!r}, model=answer, config=config)
"""


def test_a_second_ctrl_c_ends_a_worker_at_once_and_gives_its_work_back(cluster: Cluster, tmp_path: Path) -> None:
    conn_string = cluster.conn_string(cluster.migrated_database())
    (tmp_path / "slow.py").write_text(SLOW.format(conn_string))
    with SupabaseMemory.from_conn_string(conn_string, user_id="maya") as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage(f"Hello {number}") for number in range(9)])
        with Terminal("worker", "--app", "slow:memory", folder=tmp_path) as terminal:
            terminal.until("The model is asked.")
            terminal.until("1 calls")
            terminal.type("\x03")
            terminal.until("Press Ctrl-C again to exit at once")
            assert memory.work.queue().leases == 1
            terminal.type("\x03")
            assert terminal.end() == 130
            assert "Traceback" not in terminal.text
        queue = memory.work.queue()
        assert (queue.leases, queue.due, queue.dead) == (0, 1, 0)


def test_the_end_of_the_input_is_no_ctrl_c() -> None:
    program = (
        "import click, sys\nfrom langchain_supabase_memory.cli import exit_codes\n"
        "@exit_codes.commands.command()\ndef ask():\n    click.confirm('Really?', abort=True)\n"
        "sys.exit(exit_codes.run(['ask']))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.strip()) == (1, "There was no answer. Nothing was done.")


# A pipe that closes


def test_a_pipe_that_closes_ends_a_command_quietly(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for number in range(300):
            memory.conversation(f"{number:0500}").append([HumanMessage("Hello")])
    caller = ["--database-url", conn_string, "--user", user_id, "--limit", "300"]
    for arguments in (["sql"], ["status", *caller], ["status", *caller, "--json"], ["--help"], ["doctor", *caller[:2]]):
        with subprocess.Popen(
            [*PROGRAM, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings(), text=True
        ) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            said = process.stderr.read()
        assert (said, process.returncode in (1, 141)) == ("", True), arguments


# Completion


def test_completion_in_bash_for_real(tmp_path: Path) -> None:
    bash = shutil.which("bash")
    assert bash is not None, "the tests run where there is bash"
    program = tmp_path / "supabase-memory"
    program.write_text(f'#!{bash}\nexec {sys.executable} -P -c {PROGRAM[-1]!r} "$@"\n'.replace("'", "'"))
    program.chmod(0o755)
    script = (
        'eval "$(supabase-memory completion bash)"\n'
        "complete -p supabase-memory\n"
        'ask() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); '
        '_supabase_memory_completion supabase-memory; echo "${COMPREPLY[@]}"; }\n'
        "ask supabase-memory sta\nask supabase-memory status --w\nask supabase-memory status --state d\n"
        "ask supabase-memory completion ''\n"
    )
    done = subprocess.run(
        [bash, "--norc", "-c", script], capture_output=True, text=True, check=False, timeout=60,
        env=surroundings(PATH=f"{tmp_path}:{os.environ['PATH']}"),
    )  # fmt: skip
    assert done.stderr == ""
    installed, *answers = done.stdout.splitlines()
    assert "_supabase_memory_completion" in installed
    assert answers == ["status", "--wide", "due dead", "bash zsh fish"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_shell_has_a_script_that_asks_the_program(shell: str, tmp_path: Path) -> None:
    done = piped("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert "_SUPABASE_MEMORY_COMPLETE" in done.stdout
    assert f"{shell}_complete" in done.stdout
    if found := shutil.which(shell):
        (tmp_path / "script").write_text(done.stdout)
        assert subprocess.run([found, "-n", str(tmp_path / "script")], check=False).returncode == 0


def test_a_shell_that_there_is_none_of() -> None:
    code, output = run("completion", "tcsh")
    assert code == 2
    assert "'tcsh' is not one of 'bash', 'zsh', 'fish'" in output


def test_completion_offers_every_command_and_imports_none() -> None:
    environment = {"_SUPABASE_MEMORY_COMPLETE": "zsh_complete", "COMP_WORDS": "supabase-memory ", "COMP_CWORD": "1"}
    program = (
        "import sys\nfrom langchain_supabase_memory.cli.exit_codes import run\n"
        "try:\n    run([])\nfinally:\n    sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, env=surroundings(**environment)
    )
    assert done.stdout.splitlines()[1::3] == sorted(commands.commands)
    assert not [name for name in done.stderr.split() if name.startswith("langchain_supabase_memory.cli.commands.")]
