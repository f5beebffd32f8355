"""The command line, and the demo as a new user runs it."""

from __future__ import annotations

import http.client
import json
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from itertools import combinations
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from langchain.agents import create_agent
from langchain_core.embeddings import DeterministicFakeEmbedding
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.tools import tool
from rich.console import Console

from langchain_supabase_memory import (
    ChunkPolicy,
    ExtractiveSummarizer,
    MemoryConfig,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
)
from langchain_supabase_memory.cli import commands as package
from langchain_supabase_memory.cli import models
from langchain_supabase_memory.cli.application import COMMANDS, GROUPS, commands
from langchain_supabase_memory.cli.demo.show import show
from langchain_supabase_memory.errors import InvalidInputError
from langchain_supabase_memory.language.messages import fence
from langchain_supabase_memory.testing import prompt_view, transcript
from langchain_supabase_memory.testing.quoting_model import OfflineQuotingModel
from langchain_supabase_memory.worker import WorkerPolicy
from tests.cli.running import PROGRAM, piped, refused, run, succeeded, surroundings
from tests.services.postgres import Cluster

ROOT = Path(__file__).parents[2]


@contextmanager
def started(folder: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A command in a process of its own, in a folder that Python does not look into by itself."""
    program = [*PROGRAM, *arguments]
    with subprocess.Popen(program, cwd=folder, env=surroundings(), stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def heard(process: subprocess.Popen[str], pattern: str) -> tuple[str, re.Match[str]]:
    """The first line of its standard error stream that matches, after those before it."""
    assert process.stderr is not None
    before: list[str] = []
    for line in process.stderr:
        found = re.search(pattern, line)
        if found:
            return "".join(before), found
        before.append(line)
    raise AssertionError(f"never said: {pattern}\n{''.join(before)}")


HELPED = """
import contextlib, io, json, os, sys
from langchain_supabase_memory.cli.exit_codes import run
for arguments in json.loads(sys.argv[1]):
    if (child := os.fork()) == 0:
        with contextlib.redirect_stdout(io.StringIO()) as said:
            status = run(arguments)
        print(json.dumps([status, said.getvalue(), [*sys.modules]]), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
"""
"""Every help in a child of its own, which has imported no more than what every run imports."""


def test_help_imports_no_command_and_no_library() -> None:
    helped = [["--help"], *([name, "--help"] for name in sorted(commands.commands))]
    command = [sys.executable, "-c", HELPED, json.dumps(helped)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    lines = done.stdout.splitlines()
    assert (done.returncode, len(lines)) == (0, len(helped)), done.stderr
    for arguments, line in zip(helped, lines, strict=True):
        status, said, modules = json.loads(line)
        assert (status, "Usage: supabase-memory" in said) == (0, True), arguments
        loaded = set(modules)
        heavy = {"langchain", "langchain_core", "langgraph", "langchain_openai", "openai", "supabase", "psycopg"}
        assert not heavy & loaded, arguments
        home = "langchain_supabase_memory.cli.commands."
        called = {name.removeprefix(home) for name in loaded if name.startswith(home)}
        assert called == set(arguments[:-1]), "one command is imported, and none for the list"


def test_each_command_is_registered_with_its_docstring_and_its_section_of_the_page() -> None:
    modules = {path.stem for path in Path(package.__path__[0]).glob("*.py")} - {"__init__"}
    assert modules == set(COMMANDS), "a module of commands/ and the registry name the same commands"
    page = (ROOT / "docs" / "command-line.md").read_text()
    sections = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-"): text
        for heading, text in re.findall(r"^## (.+)\n((?:(?!## ).*\n)*)", page, re.MULTILINE)
    }
    for name, spec in COMMANDS.items():
        assert commands.commands[name].name == spec.name == name
        assert (commands.commands[name].help or "").startswith(spec.help)
        assert re.search(rf"`{name}\b|supabase-memory {name}\b", sections[spec.anchor]), f"no word about {name} there"
        assert f"| [`{name}`](#{spec.anchor}) | {spec.help} |" in page, "the page begins with a table of all commands"
    assert "No such command 'mgrate'." in refused("mgrate")


def test_migrate_and_doctor_over_a_connection_string(cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.create_database())
    code, output = run("doctor", "--database-url", conn_string)
    assert code == 1
    assert "supabase-memory migrate" in output
    code, output = run("migrate", environment={"SUPABASE_DB_URL": conn_string})
    assert (code, "with pgvector in extensions" in output) == (0, True)
    code, output = run("doctor", "--database-url", conn_string)
    assert (code, "is in the schema extensions" in output) == (0, True)


def test_no_database_named_says_what_to_pass() -> None:
    for command in ("migrate", "doctor", "cleanup --yes", "worker", "status", "retry"):
        said = refused(*command.split())
        assert "No database is named. Pass --database-url" in said
        assert "SUPABASE_DB_URL" in said
        assert ("--url and --key" in said) == (command != "migrate")


def test_half_a_project_says_which_half_is_missing() -> None:
    url = "https://abc.supabase.co"
    direct = {"SUPABASE_DB_URL": "postgresql://nobody@127.0.0.1:1/none"}
    for environment in ({}, direct):
        said = refused("status", "--url", url, environment=environment)
        assert "The project's key is missing. Pass --key" in said
        said = refused("status", "--key", "sb_secret_mine", environment=environment)
        assert "The project's url is missing. Pass --url" in said
        assert "mine" not in said
        assert "url is missing" in refused("status", "--url", "", environment=environment), "an empty variable is none"
    assert "No database is named" in refused("status", "--database-url", "", environment=direct)
    assert "key is missing" in refused("status", environment={"SUPABASE_URL": url})


def test_two_databases_on_the_command_line_are_one_too_many(tmp_path: Path) -> None:
    doors = {"--database-url": "postgresql://a", "--embedded": str(tmp_path), "--url": "https://abc.supabase.co"}
    for first, second in combinations(doors, 2):
        said = refused("status", first, doors[first], second, doors[second])
        assert f"{first} and {second} exclude each other" in said
    said = refused("migrate", "--embedded", str(tmp_path), "--database-url", "postgresql://a")
    assert "--database-url and --embedded exclude each other" in said
    assert not list(tmp_path.iterdir())


def test_what_is_typed_goes_before_the_environment(conn_string: str) -> None:
    away = ("http://127.0.0.1:1", "sb_secret_none")
    api = dict(zip(("SUPABASE_URL", "SUPABASE_KEY"), away, strict=True))
    assert run("doctor", "--database-url", conn_string, environment=api)[0] == 0
    assert run("doctor", environment={**api, "SUPABASE_DB_URL": conn_string})[0] == 0, "the direct connection first"
    typed = ("--url", away[0], "--key", away[1])
    assert "The Data API could not be reached" in refused(
        "doctor", *typed, environment={"SUPABASE_DB_URL": conn_string}
    )
    assert "unless $SUPABASE_DB_URL is set" in " ".join(run("doctor", "--help")[1].split())


def test_sql_prints_everything_and_writes_files_once(tmp_path: Path) -> None:
    output = succeeded("sql")
    for piece in (
        "create table memory.conversations",
        "function public.memory_append",
        "create policy",
        '"extensions"',
    ):
        assert piece in output
    assert "create role" not in output  # on Supabase the roles are there
    assert "files written" in run("sql", "--output", str(tmp_path))[1]
    assert "Nothing new" in run("sql", "--output", str(tmp_path))[1]


def test_cleanup_removes_what_is_not_to_be_kept(cluster: Cluster) -> None:
    conn_string = cluster.conn_string(cluster.migrated_database())
    with SupabaseMemory.from_conn_string(conn_string, user_id="u") as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("old")], created_at=datetime.now(UTC) - timedelta(hours=30))
        conversation.append([HumanMessage("new")])
        conversation.index(chunking=ChunkPolicy(max_age=timedelta(microseconds=1)))
        # Without limits only chunks that have expired go.
        code, output = run("cleanup", "--database-url", conn_string, "--yes")
        assert (code, output) == (0, "2 chunks removed, of all users.\n")
        code, output = run("cleanup", "--database-url", conn_string, "--max-age", "24", "--yes")
        assert (code, output) == (0, "1 message of 1 conversation removed, of all users.\n")
        assert [each.text for each in conversation.read(columns=["text"])] == ["new"]


def demo(folder: Path, *arguments: str, columns: int = 200) -> str:
    environment = surroundings(COLUMNS=str(columns))
    result = piped("demo", "--path", str(folder / "postgres"), *arguments, timeout=500, env=environment)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "needs a look" not in result.stdout + result.stderr, "no line of the log stands in the story"
    return result.stdout


BOARD = """what is known by now, each item with the message that says it

facts             I'm Maya, I run a tiny ceramics studio in Cebu     message 0
                  with a café corner in front
                  important for food: Ines is badly allergic to     message 70
                  cashews, like epipen allergic, not the "I don't
                  like it" kind
                  my sister Ines is visiting in november, first     message 64
                  time in 2 yrs 😭 she lives in Singapore
                  it's the one in Bohol on January 24, I paid       message 30
                  already so there's no escape
                  our house recipe is 18.5 grams in, 38 out, 27     message 56
                  seconds, but today it ran in 19
                  and 39 more
to do             now I need to make 8 more mugs for mrs. abella   message 672
                  remind me to pack the bowls on tuesday.          message 688
open questions    agent: At what time does the hotel want its      message 691
                  bowls on Wednesday?
who, where, when  Maya, Ines, Bea, Jomar, Mang Tonyo, Doc Arlene
                  Quimbo, Pandesal, Abella, Bohol, Singapore,
                  Siquijor, Mandaue and 12 more
topics            workshop, bowl, studio, test, glaze, plates,
                  elements, kiln, stock"""
"""What the demo shows of its board, in 80 columns."""


@pytest.mark.timeout(600)
@pytest.mark.postgres
@pytest.mark.slow
def test_the_demo_is_killed_goes_on_and_answers(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = demo(tmp_path, columns=80)
    story, _, rest = output.partition("To explore it, start this Python, and copy the lines:\n")
    python, _, code = rest.lstrip().partition("\n")
    assert Path(python).samefile(sys.executable)
    assert "was killed (kill -9)" in output
    (hint,) = (line for line in story.splitlines() if f" inspect --embedded {tmp_path}/postgres --user maya" in line)
    # The shell that it is copied into need not have the environment's commands in its path.
    bare = subprocess.run([*shlex.split(hint), "--help"], capture_output=True, text=True, check=True, env={"PATH": ""})
    assert "Usage: supabase-memory inspect" in bare.stdout
    assert "All 692 messages are there" in output
    right = int(output.split("Right answers: ")[1].split(" of 12")[0])
    assert right >= 11
    assert "no memory: 0 of 12" in " ".join(output.split())
    assert "692 chunks" in output
    assert "to be recalled by words;" in " ".join(output.split())  # no key, no embedder, no network
    assert "from message 112 of 2026-10-02, one of" in output
    assert "from message 310 of 2026-10-16, found with search_conversation_history" in output
    assert "│ recalled" in output
    assert "nothing fell between" in output
    assert "messages 0 to 681 are summarized in quotes" in " ".join(output.split())
    assert "of 692 chunks recalled" in output
    assert int(output.split("│ characters")[1].split("%")[0].split()[-1]) >= 90
    # What is told of one prompt, of every prompt and of all together fits, and is what was allowed.
    sent = [int(each.replace(",", "")) for each in re.findall(r"([\d,]+) characters of the conversation sent", output)]
    prompt = output.split("What was in that prompt")[1].split("messages 0 to 681 are")[0]
    *parts, told, _ = [
        int(each.replace(",", "")) for each in re.findall(r"^│ [a-z ]+ │ +([\d,]+) │ ", prompt, re.MULTILINE)
    ]
    assert sum(parts) == told
    assert 0 <= sent[0] - told <= 6, "blank lines stand between the parts of the question's message"
    assert f"│ characters           │ {sum(sent):,} │" in output
    assert int(output.split("No prompt held more than ")[1].split(" ")[0].replace(",", "")) <= 4_000
    assert re.search(r"sent in 2 calls instead of [\d,]+; \d+ ms\n", output)
    # The board is shown as one, and an alert is explained once.
    board = output.split("The board: ")[1].split("Questions about")[0]
    assert "\n".join(map(str.rstrip, board.strip().splitlines())) == BOARD
    assert output.count("An operator gets an alert here: ") == 1
    assert "Nothing is lost: every message is stored" in " ".join(output.split())
    assert " …\n" in output.split("points at turn 358: ")[1]
    assert max(map(len, story.replace(f"{tmp_path}/postgres", "").splitlines())) <= 80
    ran: dict[str, SupabaseMemory] = {}
    exec(code, ran)  # as it is copied
    ran["memory"].close()
    assert "E-47" in capsys.readouterr().out
    with SupabaseMemory.embedded(tmp_path / "postgres", user_id="maya") as memory:
        assert memory.conversation("demo").count() == 692 + 11 * 2 + 4  # the last with a tool's call and its result


@pytest.mark.timeout(600)
@pytest.mark.postgres
@pytest.mark.slow
def test_the_demo_takes_a_transcript_of_the_users(tmp_path: Path) -> None:
    lines = [{"role": "user", "content": "My cat is called Bituin"}, {"role": "assistant", "content": "Noted."}]
    lines += [{"role": role, "content": f"chatter {n} {role}"} for n in range(40) for role in ("user", "assistant")]
    path = tmp_path / "mine.jsonl"
    path.write_text("\n".join(json.dumps(line) for line in lines))
    output = demo(tmp_path, "--transcript", str(path), "--ask", "What is my cat called?")
    assert "All 82 messages are there" in output
    assert "“My cat is called Bituin”" in output
    assert "What 1 question took" in output


@pytest.mark.timeout(600)
@pytest.mark.postgres
@pytest.mark.slow
def test_the_demo_finds_by_meaning_where_there_is_an_embedder(tmp_path: Path) -> None:
    path = tmp_path / "mine.jsonl"
    lines = [{"role": "user", "content": f"My cat is called [bold]Bituin[/bold] {n}"} for n in range(3)]
    path.write_text("\n".join(json.dumps(line) for line in lines))
    console, embedder = Console(record=True, width=200), DeterministicFakeEmbedding(size=1536)
    folder, asked = tmp_path / "postgres", ["Who is called [Bituin]?", "Who else?"]
    show(
        console, folder, OfflineQuotingModel(), ExtractiveSummarizer(), path=path, questions=asked, embeddings=embedder
    )
    output = console.export_text()
    assert "recalled by words, and by meaning with DeterministicFakeEmbedding" in output
    assert "Who is called [Bituin]?" in output
    assert "“My cat is called [bold]Bituin[/bold] 0”" in output
    with SupabaseMemory.embedded(folder, user_id="maya", embeddings=embedder) as memory:
        [best, *_] = memory.conversation("demo").recall("cat").chunks
        assert best.similarity is not None


def test_a_key_brings_the_real_models_and_no_key_the_stand_ins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    chat, _, embedder = models.agent_models("gpt-5.5")
    assert (type(chat), embedder) == (OfflineQuotingModel, None)
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    chat, _, embedder = models.agent_models("gpt-5.5")
    assert type(chat).__name__ == "ChatOpenAI"
    assert getattr(embedder, "model", None) == "text-embedding-3-small"


def test_a_transcript_that_is_none_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    for line in ("not json", '{"role": "nobody", "content": "x"}', '{"role": "user"}', "[]", ""):
        path.write_text('{"role": "user", "content": "fine"}\n' * bool(line) + line)
        with pytest.raises(InvalidInputError, match="Line 2" if line else "empty"):
            transcript.load(path)


def test_the_stand_in_can_only_quote() -> None:
    model = OfflineQuotingModel()
    assert model.invoke([HumanMessage("Where was Rizal born?")]).text == "I can see nothing about that."
    said = [HumanMessage("Rizal was born in Calamba"), AIMessage("I see")]
    assert model.invoke([*said, HumanMessage("Where was Rizal born?")]).text == "“Rizal was born in Calamba”"
    hinted = SystemMessage("Rizal was born in Calamba")  # it is not told by its developer either
    assert model.invoke([hinted, HumanMessage("Where was Rizal born?")]).text == "I can see nothing about that."
    asked = [HumanMessage("Was Rizal born in Cebu? I forgot"), HumanMessage("Where was Rizal born?")]
    assert model.invoke(asked).text == "I can see nothing about that."


def test_the_stand_in_asks_its_tool_only_where_nothing_was_recalled() -> None:
    @tool
    def look(query: str) -> str:
        """Look."""
        return query

    model = OfflineQuotingModel().bind_tools([look])
    question = HumanMessage("Where was Rizal born?")
    [call] = model.invoke([HumanMessage("Hello"), question]).tool_calls
    assert (call["name"], call["args"]) == ("look", {"query": "Where was Rizal born?"})
    recalled = fence.message(fence.fenced([fence.element("recalled", "2026-10-02:\nUser [3]: Rizal was born")]), "m")
    assert model.invoke([recalled, question]).text == "“Rizal was born”"


def test_the_stand_in_quotes_what_was_noted_where_nothing_that_was_said_fits(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, config=MemoryConfig(profile=True)) as memory:
        memory.profile.remember("Drinks black tea", kind="preference", subject="beverage")
        kiln = memory.conversation("kiln")
        kiln.add_turn("My kiln is in Cebu", "Good.")
        kiln.board.add("action", "Order cones: six of them", actor="maya")
        kiln.board.add("fact", "The kiln stands in the yard", actor="maya")
        agent = create_agent(OfflineQuotingModel(), middleware=[SupabaseMemoryMiddleware(memory)])

        def answer(question: str) -> str:
            state: Any = {"messages": [HumanMessage(question)]}
            return str(agent.invoke(state, {"configurable": {"thread_id": "kiln"}})["messages"][-1].text)

        assert answer("What tea do I drink?") == "“Drinks black tea”"
        assert answer("How many cones?") == "“Order cones: six of them”"
        assert answer("Where is the kiln?") == "“My kiln is in Cebu”", "what was said comes first"
        assert answer("yung una nga ulit") == "“My kiln is in Cebu” “Good.”"


def test_where_a_line_of_a_prompt_is_from() -> None:
    recalled = (
        "2026-10-02:\nUser [12]: a <b> & c\n  and on\nMang Tonyo [14]: 1,800\n2026-10-03:\nAssistant [20]: [x]: y"
    )
    prompt = [
        SystemMessage("You are kind"),
        fence.message(fence.fenced([fence.element("summary", "Maya has a kiln", messages="0-9")]), "one"),
        HumanMessage("Hello\nthere [5]: no"),
        fence.message(fence.fenced([fence.element("recalled", recalled)]), "two"),
        ToolMessage(
            fence.fenced([fence.element("passage", "It is\n7391", messages="30-31", by="user", at="2026-10-15 00:00")]),
            tool_call_id="c",
        ),
    ]
    assert [(line.text, line.part, line.message, line.day) for line in prompt_view.lines(prompt)] == [
        ("Maya has a kiln", "summary", None, None),
        ("Hello", "recent", None, None),
        ("there [5]: no", "recent", None, None),
        ("a <b> & c", "recalled", 12, "2026-10-02"),
        ("and on", "recalled", 12, "2026-10-02"),
        ("1,800", "recalled", 14, "2026-10-02"),
        ("[x]: y", "recalled", 20, "2026-10-03"),
        ("It is", "passage", 30, "2026-10-15"),
        ("7391", "passage", 30, "2026-10-15"),
    ]
    noted = [
        fence.message(fence.fenced([fence.element("user_profile", "- fact (home): Cebu: the old city")]), "p"),
        fence.message(fence.fenced([fence.element("board", "- to do: Order cones [message 4]")]), "b"),
        fence.message(
            fence.fenced([fence.element("shared", "In the space Team:\n- fact: Clay comes [Ben, 2026-11-28]")]), "s"
        ),
        fence.message(fence.fenced([fence.element("referenced_turn", "It is this turn:\nUser (Ana): a\nAssistant: b")]), "t"),
    ]  # fmt: skip
    assert [(line.text, line.part) for line in prompt_view.lines(noted)] == [
        ("Cebu: the old city", "profile"),
        ("Order cones", "board"),
        ("Clay comes", "shared"),
        ("a", "turn"),
        ("b", "turn"),
    ]


def test_the_bundled_questions_are_about_what_is_said_once_and_long_ago() -> None:
    said = transcript.load()
    for question in transcript.questions():
        places = [place for place, each in enumerate(said) if question.expect in str(each.message.text)]
        assert len(places) == 1
        assert places[0] < len(said) // 2
        assert said[places[0]].created_at == question.said_at


def test_a_worker_says_what_it_made(conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for number in range(6):
            memory.conversation("trip").add_turn(f"Flight {number} is on May {number + 1}.", "Noted.")
    said = run("worker", "--database-url", conn_string, "--drain", "--user", user_id)[1]
    assert said.endswith("0 segments, 1 board, 12 chunks; 1 done.\n")


def test_a_worker_does_what_is_due_and_says_so(conn_string: str, user_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    caller, mine = ("--database-url", conn_string), ("--user", user_id)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for number in range(6):
            memory.conversation("canary-31 [bold]trip").add_turn(f"Flight {number} is on May {number + 1}.", "Noted.")
        assert "due" in run("status", *caller, *mine)[1]
        assert run("worker", *caller, "--drain", "--user", f"not {user_id}")[0] == 0
        assert memory.conversation("canary-31 [bold]trip").board.read().is_empty, "it works for somebody else"
        output = succeeded("worker", *caller, "--drain", "--metrics-port", "0", "--archive-after", "1000")
        assert " chunks; " in output
        row = memory.conversation("canary-31 [bold]trip").work.status()
        assert row is not None
        assert (row.state, row.indexed_through, row.board_through) == ("idle", 11, 11)
        assert memory.conversation("canary-31 [bold]trip").board.read().model == "extractive"
    output = succeeded("status", *caller, *mine)
    assert "canary-31 [bold]trip" in output
    output = succeeded("status", *caller, *mine, "--json")
    (found,) = json.loads(output)["conversations"]
    assert found["board_through"] == 11
    assert run("status", *caller, *mine, "--state", "dead")[1].count(user_id) == 0
    assert "0 conversations due again." in run("retry", *caller, *mine)[1]


def test_a_worker_of_an_application(
    conn_string: str, user_id: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "my_memory.py").write_text(
        "from langchain_supabase_memory import ExtractiveSummarizer, SupabaseMemory, Worker\n"
        f"memory = SupabaseMemory.from_conn_string({conn_string!r}, model=ExtractiveSummarizer())\n"
        "def made(): return Worker(memory)\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        conversation.add_turn("I am Maya.", "Hello Maya.")
        conversation.summaries.request()
        assert run("worker", "--app", "my_memory:made", "--drain")[0] == 0
        assert conversation.board.read().through_sequence == 1
        conversation.add_turn("I am from Cebu.", "Noted.")
        assert run("worker", "--app", "my_memory:memory", "--drain", "--seconds", "60")[0] == 0
        status = conversation.work.status()
        assert status is not None
        assert status.indexed_through == 3


def test_a_worker_gathers_profiles_where_it_is_told_to(conn_string: str, user_id: str) -> None:
    gathered = []
    for options in ([], ["--profile"]):
        with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
            memory.conversation(f"t{len(options)}").append(
                ["From now on, always answer me in Tagalog.", *["Well."] * 20]
            )
            assert run("worker", "--database-url", conn_string, "--drain", "--user", user_id, *options)[0] == 0
            gathered.append([each.value for each in memory.profile.read()])
    assert gathered == [[], ["Tagalog"]]


def test_options_that_cannot_apply_are_refused(
    conn_string: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "refusing.py").write_text(
        "from langchain_supabase_memory import SupabaseMemory, Worker\n"
        f"memory = SupabaseMemory.from_conn_string({conn_string!r})\n"
        "worker = Worker(memory)\n"
    )
    monkeypatch.chdir(tmp_path)
    of_any = {"--database-url": "x", "--embedded": "x", "--url": "x", "--key": "x", "--model": "x", "--embeddings": "x"}
    for option, value in of_any.items():
        for name in ("memory", "worker"):
            said = refused("worker", "--drain", "--app", f"refusing:{name}", option, value)
            assert f"{option} cannot apply. With --app, the application brings its own" in said
    assert "--profile cannot apply. With --app" in refused("worker", "--app", "refusing:memory", "--profile")
    of_a_worker = {"--concurrency": "4", "--calls-per-minute": "1000", "--archive-after": "1000", "--user": "ana"}
    for option, value in of_a_worker.items():
        said = refused("worker", "--drain", "--app", "refusing:worker", option, value)
        assert f"{option} cannot apply. The application's Worker" in said
    settings = [each for pair in of_a_worker.items() for each in pair]
    assert run("worker", "--drain", "--app", "refusing:memory", *settings)[0] == 0
    environment = dict.fromkeys(("SUPABASE_DB_URL", "SUPABASE_URL", "SUPABASE_KEY", "OPENAI_MODEL"), "x")
    assert run("worker", "--drain", "--app", "refusing:worker", environment=environment)[0] == 0, "ignored quietly"
    assert "--seconds cannot apply. It goes with --drain." in refused("worker", "--seconds", "5")
    said = " ".join(run("worker", "--help")[1].split())
    assert "is refused" in said
    assert f"has {WorkerPolicy().grace_seconds:.0f} more" in said


def test_an_application_that_is_not_there_says_what_is_missing(
    conn_string: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = tmp_path / "shop"
    package.mkdir()
    (package / "__init__.py").touch()
    (package / "needy.py").write_text("import shop.gone\n")
    (package / "needier.py").write_text("from nowhere_at_all.deep import thing\n")
    (package / "older.py").write_text("from langchain_supabase_memory.values import NoSuchThing\n")
    (package / "bare.py").write_text(
        "from langchain_supabase_memory.errors import MissingDependencyError\nraise MissingDependencyError('It', 'otel')\n"
    )
    (package / "made.py").write_text(
        "from langchain_supabase_memory import SupabaseMemory, Worker\n"
        "def needs(settings, *, region, size=3, **more): raise AssertionError('never called')\n"
        "nothing = 5\n"
        f"def free(size=3, *more): return SupabaseMemory.from_conn_string({conn_string!r})\n"
    )
    monkeypatch.chdir(tmp_path)
    for name, said in {
        "nowhere:worker": "The application's module nowhere was not found. Run it in the folder that holds it",
        "shop.nowhere:worker": "The application's module shop.nowhere was not found",
        "nowhere.shop:worker": "The application's module nowhere.shop was not found",
        "shop/made.py:free": "was not found",
        "shop.needy:worker": "The application needs the module shop.gone, which is not installed",
        "shop.needier:worker": "The application needs the module nowhere_at_all, which is not installed",
        "shop.older:worker": "needs the module langchain_supabase_memory.values, which lacks what is imported from it",
        "shop.bare:worker": "pip install 'langchain-supabase-memory[otel]'",
        "shop.made:none": "none was not found in the application's module shop.made",
        "shop.made:nothing": "gives a int",
        "shop.made:needs": "The function shop.made:needs needs arguments (settings, region)",
        "shop.made:Worker": "needs arguments (memory)",
        "shop.made": "--app shop.made is not a module:name",
        ".made:free": "is not a module:name",
        ":free": "is not a module:name",
    }.items():
        assert said in refused("worker", "--app", name, "--drain"), name
    assert run("worker", "--app", "shop.made:free", "--drain")[0] == 0


@pytest.mark.parametrize("name", ["memory", "worker", "counted"])
def test_the_metrics_of_an_application_are_served(conn_string: str, user_id: str, tmp_path: Path, name: str) -> None:
    (tmp_path / "observed.py").write_text(
        "from prometheus_client import CollectorRegistry, Counter\n"
        "from langchain_supabase_memory import MemoryConfig, SupabaseMemory, Worker\n"
        "from langchain_supabase_memory.telemetry import Metrics\n"
        "registry = CollectorRegistry()\n"
        "Counter('of_the_application', 'Its own.', registry=registry)\n"
        f"memory = SupabaseMemory.from_conn_string({conn_string!r})\n"
        "worker = Worker(memory)\n"
        "config = MemoryConfig(metrics=Metrics(registry))\n"
        f"def counted(): return SupabaseMemory.from_conn_string({conn_string!r}, config=config)\n"
    )
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").add_turn("I am Maya.", "Hello Maya.")
    with started(tmp_path, "worker", "--app", f"observed:{name}", "--metrics-port", "0") as process:
        before, found = heard(process, r"Metrics on http://127\.0\.0\.1:(\d+)/metrics")
        logged, line = heard(process, r"INFO +\S+: A piece of work is done outcome=done (.*)")
        connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=10)
        connection.request("GET", "/metrics")
        body = connection.getresponse().read().decode()
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert 'memory_pieces_total{outcome="done"}' in body
    assert "memory_queue_depth" in body
    assert ("of_the_application_total" in body) == (name == "counted")
    assert "A worker has started worker=" in before + logged
    assert "thread_id=" in line[1]
    assert "Maya" not in before + logged + line[0]


def test_a_worker_logs_as_its_application_does(conn_string: str, tmp_path: Path) -> None:
    (tmp_path / "telling.py").write_text(
        "import logging\n"
        "from langchain_supabase_memory import SupabaseMemory\n"
        "logging.basicConfig(format='mine: %(message)s', level=logging.INFO)\n"
        f"memory = SupabaseMemory.from_conn_string({conn_string!r})\n"
    )
    with started(tmp_path, "worker", "--app", "telling:memory", "--drain", "--seconds", "30") as process:
        heard(process, r"^mine: A worker has started$")
        assert process.wait(60) == 0
    with started(tmp_path, "--log-format", "json", "worker", "--app", "telling:memory", "--drain") as process:
        heard(process, r'^\{.*"message": "A worker has started"')
        assert process.wait(60) == 0


def test_a_worker_without_a_database_or_a_schema_says_what_to_do(cluster: Cluster) -> None:
    code, output = run("worker", "--drain", environment={"SUPABASE_URL": "", "SUPABASE_KEY": ""})
    assert (code, "--database-url" in output) == (1, True)
    code, output = run("worker", "--database-url", cluster.conn_string(cluster.create_database()), "--drain")
    assert (code, "supabase-memory migrate" in output, "Traceback" in output) == (1, True, False)


def test_the_help_groups_every_command_and_has_examples() -> None:
    output = CliRunner().invoke(commands, ["--help"]).output
    assert {spec.anchor for spec in COMMANDS.values()} == {each for anchors in GROUPS.values() for each in anchors}
    assert all(re.search(rf"^  {name}  ", output, re.MULTILINE) for name in COMMANDS)
    assert "supabase-memory search kiln --user maya" in output


def test_folder_and_user_come_from_the_environment_too(tmp_path: Path) -> None:
    folder = str(tmp_path / "nothing-here")
    env = {"SUPABASE_MEMORY_FOLDER": folder, "SUPABASE_MEMORY_USER": "maya"}
    result = CliRunner().invoke(commands, ["conversations"], env=env)
    assert result.exit_code == 1
    assert "nothing-here" in result.output, "no user and no other database is asked for"


ACTING_FOR_ALL = {"cleanup", "insights", "retry", "status", "unreadable", "worker"}
"""The commands that act for everybody, and which `--user` narrows."""


def test_every_command_for_one_user_takes_them_from_the_environment_and_says_so() -> None:
    def with_user(command: click.Command, path: str) -> Iterator[tuple[str, click.Option]]:
        for parameter in command.params:
            if isinstance(parameter, click.Option) and "--user" in parameter.opts:
                yield path, parameter
        if isinstance(command, click.Group):
            for name in command.list_commands(click.Context(command)):
                yield from with_user(command.commands[name], f"{path} {name}".strip())

    options = dict(with_user(commands, ""))
    named = {path for path, option in options.items() if option.envvar == "SUPABASE_MEMORY_USER"}
    assert all("by default $SUPABASE_MEMORY_USER" in (options[path].help or "") for path in named)
    assert {path for path in options if path not in named} == ACTING_FOR_ALL | {"forget"}
    assert {"export", "import", "inspect", "spaces list", "spaces create", "spaces join", "profile remember"} <= named


def test_an_export_and_an_import_are_those_of_the_user_of_the_environment(
    conn_string: str, user_id: str, tmp_path: Path
) -> None:
    env = {"SUPABASE_DB_URL": conn_string, "SUPABASE_MEMORY_USER": user_id}
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage("canary-env")])
    code, output = run("export", str(tmp_path / "mine.jsonl"), environment=env)
    assert (code, output.startswith("1 message of 1 conversation exported")) == (0, True), output
    assert "canary-env" in (tmp_path / "mine.jsonl").read_text()
    there = {**env, "SUPABASE_MEMORY_USER": f"{user_id}-2"}
    code, output = run("import", "jsonl", str(tmp_path / "mine.jsonl"), environment=there)
    assert "1 stored" in output
    code, output = run("export", str(tmp_path / "other.jsonl"), "--user", f"{user_id}-3", environment=env)
    assert output.startswith("0 messages of 0 conversations exported"), "what is typed goes before the environment"
    assert "Pass --user or set SUPABASE_MEMORY_USER" in refused(
        "export", str(tmp_path / "x.jsonl"), environment={"SUPABASE_DB_URL": conn_string}
    )
    assert "Missing option '--user'" in refused("forget", environment=env), "nothing is deleted by a variable"
