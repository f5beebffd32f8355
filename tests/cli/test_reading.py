"""`show`, `search` and `conversations`: readable output for any message."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage, ToolMessage
from rich.cells import cell_len

from langchain_supabase_memory import ContextBudget, ExtractiveSummarizer, SupabaseMemory
from langchain_supabase_memory.cli import message_pages
from langchain_supabase_memory.cli.application import COMMANDS
from langchain_supabase_memory.cli.highlight import Highlighter
from langchain_supabase_memory.language.messages.invisible import is_invisible, legible
from tests.cli.running import PROGRAM, Terminal, piped, refused, run, succeeded, surroundings

DAY = datetime(2026, 10, 5, 12, tzinfo=UTC)
FAMILY = "👨‍👩‍👧"
HOSTILE = "\x1b[2J\x1b]0;gone\x07 pay\u202eload \u200b\ttab \u2028 \udcff"


def join_lines(output: str) -> str:
    """Return the output as one line."""
    return " ".join(output.split())


@pytest.fixture
def caller(conn_string: str) -> tuple[str, str]:
    return "--database-url", conn_string


@pytest.fixture
def studio(conn_string: str, user_id: str, caller: tuple[str, str]) -> tuple[str, ...]:
    """The arguments that name a conversation of 25 turns over three days, a tool in each."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("my studio")
        for number in range(25):
            call = {"name": "find_part", "args": {"number": number}, "id": "c"}
            conversation.append(
                [
                    HumanMessage(f"Question {number}: my kiln shows E-{number}.", name="Maya"),
                    AIMessage("", tool_calls=[call]),
                    ToolMessage(f"shelf {number}", tool_call_id="c", name="find_part"),
                    AIMessage(f"Answer {number}\n```python\nprint({number})\n```"),
                ],
                created_at=DAY + timedelta(days=number // 10),
            )
    return ("my studio", *caller, "--user", user_id)


def test_the_newest_turns_are_shown_under_their_dates(studio: tuple[str, ...], user_id: str) -> None:
    said = succeeded("show", *studio, environment={"TZ": "UTC"})
    assert said.startswith("Question 0: my kiln shows E-0.\n")
    assert f"my studio, of the user {user_id} with the agent default" in said
    assert "100 messages; " in said
    assert "There are earlier messages: --last 20 or --all shows them." in said
    assert [number for number in range(25) if f"\n  Question {number}:" in said] == list(range(15, 25))
    assert said.count("── ") == 2
    assert said.index("── Tuesday, 2026-10-06") < said.index("Question 15:") < said.index("── Wednesday, 2026-10-07")
    assert "User (Maya)  12:00  [96]\n  Question 24: my kiln shows E-24.\n" in said
    assert "Assistant  12:00  [97]\n  [calls find_part]\n" in said
    assert "  Answer 24\n  ```python\n  print(24)\n  ```\n" in said
    assert "shelf" not in said
    assert "10 answers of tools left out; --tools shows them." in said


def test_signals_narrow_a_list_and_stand_at_their_messages(
    conn_string: str, user_id: str, caller: tuple[str, str]
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for thread, words in (("sad", "You never listen."), ("glad", "Thanks!")):
            conversation = memory.conversation(thread)
            conversation.add_turn(words, "I see.")
            conversation.index()
    of = (*caller, "--user", user_id)
    _, output = run("conversations", *of, "--signal", "complaint", "--signal", "giving_up", "--json")
    (found,) = json.loads(output)["conversations"]
    assert (found["thread_id"], found["signals"]) == ("sad", ["complaint"])
    assert '[complaint: "You never listen."]' in run("show", "sad", *of, "--signals")[1]
    assert "complaint" not in run("show", "sad", *of)[1]
    (signal,) = json.loads(run("show", "sad", *of, "--signals", "--json")[1])["signals"]
    assert (signal["signal"], signal["quote"], signal["sequence"]) == ("complaint", "You never listen.", 0)


def test_what_is_shown_can_be_chosen(studio: tuple[str, ...]) -> None:
    def numbers(*options: str) -> tuple[list[int], str]:
        said = succeeded("show", *studio, *options)
        return [int(line.rpartition("[")[2][:-1]) for line in said.splitlines() if line.endswith("]") and "  [" in line
                and not line.startswith(" ")], said  # fmt: skip

    assert numbers("--last", "1", "--tools")[0] == [96, 97, 98, 99]
    said = numbers("--last", "1", "--tools")[1]
    assert '[calls find_part({"number": 24})]' in said
    assert "Tool (find_part)" in said
    assert "shelf 24" in said
    assert numbers("--last", "0") == ([], said := numbers("--last", "0")[1])
    assert "earlier messages: --all shows them" in said
    assert numbers("--last", "25", "--tools")[0] == list(range(100))
    assert numbers("--last", "1000", "--tools")[0] == list(range(100))
    everything, said = numbers("--all", "--tools")
    assert everything == list(range(100))
    assert "earlier" not in said
    beside, said = numbers("--around", "50", "--tools")
    assert beside == list(range(45, 56))
    assert "earlier messages" in said
    assert "later messages" in said
    assert numbers("--around", "0", "--tools")[0] == list(range(6))
    assert numbers("--around", "99", "--tools")[0] == list(range(94, 100))
    assert "has no message 100. Its newest is 99." in refused("show", *studio, "--around", "100")
    assert "--around cannot apply" in refused("show", *studio, "--all", "--around", "3")
    assert "--last cannot apply" in refused("show", *studio, "--around", "3", "--last", "3")
    assert "--tools cannot apply" in refused("show", *studio, "--json", "--tools")
    assert "Invalid value for '--last'" in refused("show", *studio, "--last", "-1")


def test_a_long_conversation_is_read_by_pages(
    conn_string: str, user_id: str, caller: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(message_pages, "PAGE_SIZE", 7)
    monkeypatch.setattr(message_pages, "_ROLE_PAGE_SIZE", 7)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage(f"said {number}.", id=f"{number}") for number in range(60)])
        for gone in (*range(10), 33, 34, 59):
            conversation.forget_message(str(gone))
        kept = [number for number in range(60) if number not in (*range(10), 33, 34, 59)]
        assert message_pages.all_messages(conversation).last == 58
        for window, expected in (
            (message_pages.all_messages(conversation), kept),
            (message_pages.newest(conversation, 20), kept[-20:]),
            (message_pages.newest(conversation, 500), kept),
            (message_pages.newest(conversation, 500, 9), kept[-9:]),
            (message_pages.newest(conversation, 47), kept),
            (message_pages.around(conversation, 33, 3), [30, 31, 32, 35, 36, 37]),
            (message_pages.around(conversation, 3, 2), [10, 11]),
            (message_pages.Window(0, -1), []),
        ):
            pages = list(message_pages.pages(conversation, window, ("text",)))
            assert [each.sequence for page in pages for each in page] == expected
            assert max(map(len, pages), default=0) <= 7
        assert message_pages.newest(conversation, 46).has_earlier
        assert not message_pages.newest(conversation, 47).has_earlier
    for message in kept:
        assert f"said {message}." in run("show", "t", *caller, "--user", user_id, "--all")[1]


def test_where_nobody_says_how_many_a_long_turn_is_cut(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage("go"), *(AIMessage(f"step {number}.") for number in range(300))])
    said = run("show", "t", *caller, "--user", user_id)[1]
    assert said.count("Assistant  ") == 200
    assert "There are earlier messages" in said
    assert run("show", "t", *caller, "--user", user_id, "--last", "1")[1].count("Assistant  ") == 300


def test_a_conversation_that_is_not_there_says_what_to_do(
    conn_string: str, user_id: str, caller: tuple[str, str]
) -> None:
    mine = (*caller, "--user", user_id)
    for command in (("show", "no such"), ("search", "kiln", "--thread", "no such")):
        said = refused(*command, *mine)
        assert f"The user {user_id} has no conversation no such." in said
        assert "`supabase-memory conversations --user …` lists those that are there." in said
    assert "thread_id must have 1 to 512 bytes" in refused("show", "", *mine)
    assert "thread_id has a control character" in refused("show", "a\x1b[2J", *mine)
    assert "Missing option '--user'" in refused("show", "t", *caller)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for agent_id in ("billing", "sup port"):
            memory.conversation("t", agent_id=agent_id).append([HumanMessage(f"To {agent_id}")])
    assert "Several agents have a conversation t with this user. Pass --agent, one of " in refused("show", "t", *mine)
    assert "To sup port" in run("show", "t", *mine, "--agent", "sup port")[1]
    assert "has no conversation t with the agent default" in refused("show", "t", *mine, "--agent", "default")


def test_media_and_what_cannot_be_read_are_named(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    blocks: list[str | dict[Any, Any]] = [
        {"type": "text", "text": "Look at this"},
        {"type": "image", "url": "https://example.com/kiln.png"},
        {"type": "file", "base64": "aGVsbG8=", "mime_type": "application/pdf"},
    ]
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage(blocks), AIMessage(""), SystemMessage("Be kind")])
    said = run("show", "t", *caller, "--user", user_id)[1]
    assert "  Look at this\n  [image, https://example.com/kiln.png; application/pdf, 5 bytes]\n" in said
    assert "  [says nothing]\n" in said
    assert "System " in said


BIDI_THREAD = "שיחה  \u202e with blanks "
PRINTING = {
    "show": ("show", BIDI_THREAD, "--tools"),
    "board": ("board", BIDI_THREAD, "--history"),
    "context": ("context", BIDI_THREAD, "--question", "smile"),
    "search": ("search", "smile"),
    "conversations": ("conversations",),
    "why": ("why", BIDI_THREAD, "last", "smile"),
}
"""The commands that print what was said."""


def test_each_command_that_reads_conversations_is_tried_with_hostile_text() -> None:
    reading = {name for name, spec in COMMANDS.items() if spec.anchor == "read-conversations"}
    assert {arguments[0] for arguments in PRINTING.values()} == reading


@pytest.mark.parametrize("command", PRINTING)
@pytest.mark.parametrize(
    "columns", [20, 80, pytest.param(40, marks=pytest.mark.slow), pytest.param(200, marks=pytest.mark.slow)]
)
def test_nothing_that_was_said_is_obeyed_by_a_terminal(
    conn_string: str, user_id: str, caller: tuple[str, str], columns: int, command: str
) -> None:
    said = f"{HOSTILE} and :smile: [bold]no[/bold] {FAMILY}"
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation(BIDI_THREAD)
        conversation.append(
            [
                HumanMessage(said, name="Assistant\x1b[31m"),
                AIMessage("שלום עולם " * 20),
                HumanMessage("x" * 300 + " 日本語" * 30),
                AIMessage("", tool_calls=[{"name": "run\x1b[0m", "args": {"a": "\x9b1m"}, "id": "c"}]),
                ToolMessage("\x1b[5mdone", tool_call_id="c"),
            ]
        )
        conversation.index()
        asked = HumanMessage("And now?")
        conversation.append([asked, AIMessage("Well.")], pack=conversation.context(asked))
        conversation.board.edit_summary(said, actor="ana")
        conversation.board.add("fact", said, actor="ana")
        conversation.update(title="\u202e" + "t" * 190)
        last = memory.conversation("last")
        last.append([HumanMessage(said)])
    arguments = (*PRINTING[command], *caller, "--user", user_id)
    with Terminal(*arguments, columns=columns) as terminal:
        assert terminal.end() == 0
        shown, raw = terminal.text, terminal.raw
    assert max(map(cell_len, shown.replace("\r\n", "\n").splitlines())) <= columns
    assert "\x1b[2J" not in raw
    assert "\x1b]0" not in raw
    allowed = "\r\u200d\u2068\u2069"  # line ends, what joins the family, what isolates
    assert not [character for character in shown if is_invisible(character) and character not in allowed]
    assert shown.count("\u2068") == shown.count("\u2069")
    plain = piped(*arguments).stdout
    if command not in ("conversations", "why"):  # which show a part of it, as one line, or its place
        assert r"\u001b[2J\u001b]0;gone\u0007 pay\u202eload \u200b" in plain
    assert not [character for character in plain if is_invisible(character) and character not in f"\t{allowed}"]
    if command == "show":
        assert FAMILY in shown
        assert ":smile: [bold]no[/bold]" in join_lines(shown)
        assert shown.count("\u2068") > 0
        assert "User (Assistant" in plain
        assert "x" * 300 + " 日本語" * 30 in plain, "in a pipe a line is whole"


@given(st.text())
def test_a_legible_text_holds_nothing_unseen_but_what_shapes(text: str) -> None:
    made = legible(text)
    left = {character for character in made if is_invisible(character)}
    assert left <= set("\u200c\u200d\ufe0e\ufe0f") | {chr(code) for code in range(0xE0000, 0xE0080)}
    made.encode()
    if not any(is_invisible(character) for character in text):
        assert made == text


def test_as_json_everything_is_there_in_ascii(studio: tuple[str, ...], user_id: str) -> None:
    done = piped("show", *studio, "--json", "--last", "1")
    assert done.stdout.isascii()
    document = json.loads(done.stdout)
    assert (document["earlier"], document["later"]) == (True, False)
    assert document["conversation"]["user_id"] == user_id
    question, call, result, answer = document["messages"]
    assert (question["sequence"], question["role"], question["name"]) == (96, "user", "Maya")
    assert question["said_at"] == "2026-10-07T12:00:00+00:00"
    assert call["calls"] == [{"name": "find_part", "arguments": {"number": 24}}]
    assert (result["role"], result["text"]) == ("tool", "shelf 24")
    assert answer["text"].startswith("Answer 24\n```python")
    assert len(json.loads(run("show", *studio, "--json", "--all")[1])["messages"]) == 100
    assert json.loads(run("show", *studio, "--json", "--last", "0")[1])["messages"] == []


def test_the_board_is_shown_with_ids_and_evidence(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    mine = ("board", "t", *caller, "--user", user_id)
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=ExtractiveSummarizer()) as memory:
        conversation = memory.conversation("t")
        conversation.append([HumanMessage("Hello")])
        assert "The board is empty." in run(*mine)[1]
        conversation.append([HumanMessage("My kiln is a Rohde. I must buy clay by Friday.")])
        conversation.board.revise()
        conversation.board.edit_summary("A potter\x1b[2J", actor="ana")
        item = conversation.board.add("fact", "Works in Cebu", actor="ana")
        conversation.board.pin(item, actor="ana")
        conversation.board.add("action", "Call the shop", actor="ana")
        conversation.board.add("action", "Sold", actor="ana", state="done")
        conversation.board.add("question", "Which cone?", actor="ana")
        said = run(*mine)[1]
        assert "History" not in said
        by_rule = next(each for each in conversation.board.read().items if each.kind == "action" and each.quote)
        conversation.board.edit(by_rule.id, text="Buy clay", actor="ana")
    assert "Note\n  A potter" in said
    assert "\x1b" not in said
    assert "Summary\n  " in said
    assert f"Facts\n  {item[:8]}  Works in Cebu (pinned, by a person)\n" in said
    assert f"  {by_rule.id[:8]}  User: I must buy clay by Friday.  [1]\n" in said
    assert "  Call the shop (by a person)\n" in said
    assert "Sold" not in said
    assert "  Which cone? (by a person)\n" in said
    said = run(*mine, "--history")[1]
    assert "Done, answered or superseded\n" in said
    assert "  Sold (by a person, done)\n" in said
    assert f'  {by_rule.id[:8]}  Buy clay (by a person)  [1]\n            "I must buy clay by Friday."\n' in said
    changes = said.partition("History, newest first\n")[2]
    assert re.match(rf"  [-\d: ]+  edit {by_rule.id[:8]}  by ana\n    now: Buy clay\n    before: User: I must", changes)
    document = json.loads(run(*mine, "--json", "--history")[1])
    assert document["conversation"]["thread_id"] == "t"
    assert {each["id"] for each in document["board"]["items"]} >= {item, by_rule.id}
    assert document["board"]["changes"][0]["changed_by"] == "ana"
    assert "has no conversation nowhere" in refused("board", "nowhere", *mine[2:])


def test_the_next_prompt_is_shown_part_by_part(studio: tuple[str, ...], conn_string: str, user_id: str) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, model=ExtractiveSummarizer()) as memory:
        conversation = memory.conversation(studio[0])
        conversation.index()
        conversation.board.revise()
        conversation.board.add("fact", "Works in Cebu", actor="ana")
        asked = HumanMessage("And now?")
        budget = ContextBudget(tokens=400)
        conversation.append([asked, AIMessage("Well.")], pack=conversation.context(asked, budget=budget))
        said = succeeded("context", *studio, "--question", "What of E-3?")
        assert "Budget of 400 tokens: " in said, "that of the newest prompt"
        titles = [
            line.partition("  ")[0] for line in said.splitlines() if re.search(r"characters?, \d+ tokens?$", line)
        ]
        assert titles == [*dict.fromkeys(titles)]
        assert titles[-1] == "Question"
        assert {"Recent", "Board", "Recalled"} <= {*titles}
        assert "as many of the newest whole turns as fit" in said
        assert "  User\n    What of E-3?" in said
        assert re.search(r"tokens would be sent instead of \d[\d,]+ for all 103 messages\.", said)
        document = json.loads(run("context", *studio, "--budget", "3000", "--json")[1])
        assert document["budget"] == "3,000 tokens"
        names = [each["name"] for each in document["parts"]]
        assert "current" not in names, "without a question there is none"
        (recent,) = (each for each in document["parts"] if each["name"] == "recent")
        assert recent["lines"][-1] == {"sequence": 101, "speaker": "Assistant", "text": "Well."}
        assert all(each["why"] and each["characters"] and each["tokens"] for each in document["parts"])
        assert sum(each["tokens"] for each in document["parts"]) == document["tokens"]
        assert conversation.count() == 102, "nothing is stored"
    assert "'--budget'" in refused("context", *studio, "--budget", "5")


def test_users_are_listed_and_narrowed_by_a_part_of_their_ids(
    conn_string: str, user_id: str, caller: tuple[str, str], sql: psycopg.Connection
) -> None:
    for name in ("ana@Shop.example", "ben@shop.example", "\u202ecleo"):
        with SupabaseMemory.from_conn_string(conn_string, user_id=f"{user_id}-{name}") as memory:
            for number in range(2 if name[0] == "a" else 1):
                memory.conversation(f"t{number}").append([HumanMessage("My kiln is blue.")])
    sql.execute(
        "update memory_private.work set dead_at = clock_timestamp() where user_id = %s", [f"{user_id}-ben@shop.example"]
    )
    said = succeeded("users", "shop.EXAMPLE", *caller, "--json")
    ana, ben = (each for each in json.loads(said)["users"] if each["user_id"].startswith(user_id))
    assert (ana["user_id"], ana["conversations"], ana["dead"]) == (f"{user_id}-ana@Shop.example", 2, 0)
    assert (ben["conversations"], ben["dead"]) == (1, 1)
    assert ana["tokens"] == 2 * ben["tokens"] > 0
    lines = run("users", user_id, *caller)[1].splitlines()
    assert lines[0] == "user\tconversations\ttokens\tdead\tlast change"
    assert lines[2].startswith(f"{user_id}-ben@shop.example\t1\t{ben['tokens']}\t1\t20")
    assert lines[3].startswith(rf"{user_id}-\u202ecleo")
    said = run("users", user_id, *caller, "--limit", "1")[1]
    assert f"There may be more: --after {user_id}-ana@Shop.example continues the list." in said
    said = run("users", user_id, *caller, "--after", f"{user_id}-ana@Shop.example")[1]
    assert "ana@" not in said
    assert "ben@" in said
    assert "No user's id contains 100% nobody." in run("users", "100% nobody", *caller)[1]
    for columns in (30, 60, 120):
        with Terminal("users", user_id, *caller, columns=columns) as terminal:
            assert terminal.end() == 0
            assert max(map(cell_len, terminal.lines)) <= columns
            assert "\u202e" not in terminal.text


def test_a_list_of_users_goes_on_after_an_id_with_a_space(conn_string: str, user_id: str) -> None:
    for name in ("ana 1", "ana 2"):
        with SupabaseMemory.from_conn_string(conn_string, user_id=f"{user_id} {name}") as memory:
            memory.conversation("t").append([HumanMessage("Hello")])
    said = run("users", user_id, "--database-url", conn_string, "--limit", "1")[1]
    _, hint = said.split("There may be more: ")
    after = shlex.split(hint.removesuffix(" continues the list.\n"))
    assert after == ["--after", f"{user_id} ana 1"]
    assert f"{user_id} ana 2" in run("users", user_id, "--database-url", conn_string, *after)[1]


def test_words_are_found_where_they_stand(studio: tuple[str, ...], conn_string: str, user_id: str) -> None:
    thread, *mine = studio
    said = succeeded("search", "KILN", "e-24", *mine, "--thread", thread)
    assert "Nothing is indexed here yet" in said
    assert "Messages, newest first" in said
    assert "[96]\n  Question 24: my kiln shows E-24.\n" in said
    assert "[92]" not in said, "every word has to be there"
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation(thread).index()
    said = run("search", "which kiln shows E-7?", *mine, "--limit", "1")[1]
    assert said.startswith("Recalled, best first\n")
    assert "[28]  my studio, with default\n  Question 7: my kiln shows E-7.\n" in said
    assert "No message contains all of these words." in said
    said = run("search", "KILN SHOWS", "e-24", *mine)[1]
    assert "Messages, newest first" in said
    assert (
        "[96]  my studio, with default\n  Question 24: my kiln shows E-24.\n" in said.partition("Messages, newest")[2]
    )
    said = run("search", "kiln", *mine, "--thread", thread, "--limit", "3")[1]
    assert "There are more than these 3. --limit shows more." in said
    assert "No message contains all of these words." in run("search", "zebra", *mine, "--thread", thread)[1]
    document = json.loads(run("search", "kiln", *mine, "--thread", thread, "--limit", "2", "--json")[1])
    assert [each["sequence"] for each in document["found"]] == [96, 92]
    assert document["more"]
    assert len(document["recalled"]) == 2
    assert {each["thread_id"] for each in document["found"]} == {thread}
    assert "of 1 to 1,000" not in run("search", "k" * 1000, *mine)[1]
    assert "has at most 1,000 characters" in refused("search", "k" * 1001, *mine)
    with Terminal("search", "kiln", *mine, "--thread", thread, columns=40) as terminal:
        assert terminal.end() == 0
        assert "\x1b[1;30;43mkiln\x1b[0m" in terminal.raw, "marked where it was found"
        assert max(map(cell_len, terminal.lines)) <= 40


def test_no_words_are_refused(caller: tuple[str, str]) -> None:
    for words in ([""], ["  "], ["\t", "\u2003"]):
        assert "There are no words to look for." in refused("search", *words, *caller, "--user", "u"), words
    assert "Missing argument 'WORDS...'" in refused("search", *caller, "--user", "u")


def marked(words: list[str], excerpt: str) -> list[str]:
    """The marked parts of an excerpt."""
    text = Highlighter(words).mark(excerpt)
    return [text.plain[span.start : span.end] for span in text.spans]


def test_an_excerpt_shows_the_words_with_their_context() -> None:
    long = "clay " * 100 + "the kiln" + " sand" * 100
    [excerpt] = Highlighter(["Kiln"]).excerpts(long)
    assert excerpt.startswith("…clay clay")
    assert excerpt.endswith("sand sand…")
    assert marked(["Kiln"], excerpt) == ["kiln"]
    assert Highlighter(["kiln"]).excerpts("a kiln\n\n  here") == ["a kiln here"]
    assert marked(["Kiln", "The Kiln"], Highlighter(["The Kiln"]).excerpts(long)[0]) == ["the kiln"]
    for words in (["zebra"], [".*"]):
        assert Highlighter(words).excerpts(long) == []
    assert len(Highlighter(["clay"]).excerpts(long)) == 3
    assert marked(["cafe\u0301"], *Highlighter(["cafe\u0301"]).excerpts("a CAFÉ")) == ["CAFÉ"]
    assert Highlighter(["x"]).excerpts("\x1b[2Jx")[0] == r"\u001b[2Jx"
    assert Highlighter(["kiln"]).excerpt("kiln " * 100, 12) == "kiln kiln ki…"
    assert marked(["kiln"], "kiln kiln ki…") == ["kiln", "kiln"]


@given(st.text(), st.text(min_size=1).filter(str.strip))
def test_an_excerpt_is_one_line_with_marks(text: str, query: str) -> None:
    highlighter = Highlighter([query])
    for excerpt in [
        *highlighter.excerpts(text),
        *highlighter.excerpts(text + query + text),
        highlighter.excerpt(text, 5),
    ]:
        assert "\n" not in excerpt
        assert all(marked([query], excerpt))


def test_conversations_are_listed(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    mine = ("conversations", *caller, "--user", user_id)
    assert run(*mine) == (0, f"The user {user_id} has no conversations.\n")
    assert run("search", "kiln", *caller, "--user", user_id) == (0, f"The user {user_id} has no conversations.\n")
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        for number in range(3):
            memory.conversation(f"trip {number}", agent_id=f"a{number % 2}").add_turn(
                f"Where to, {number}?", "\x1b[2JCebu"
            )
        memory.conversation("trip 0", agent_id="a0").update(title="t" * 200)
    done = piped(*mine)
    heading, *rows = [line.split("\t") for line in done.stdout.splitlines()]
    assert heading == ["thread", "agent", "messages", "last message", "title", "last words"]
    assert [row[:3] for row in rows] == [["trip 2", "a0", "2"], ["trip 1", "a1", "2"], ["trip 0", "a0", "2"]]
    assert [row[4] for row in rows] == ["Where to, 2?", "Where to, 1?", "t" * 200]
    assert all(row[5].startswith("Assistant: ") and row[5].endswith("Cebu") for row in rows)
    assert "\x1b" not in done.stdout
    page = json.loads(run(*mine, "--json", "--limit", "2")[1])
    assert [each["thread_id"] for each in page["conversations"]] == ["trip 2", "trip 1"]
    rest = json.loads(run(*mine, "--json", "--after", page["after"])[1])
    assert ([each["thread_id"] for each in rest["conversations"]], rest["after"]) == (["trip 0"], None)
    assert f"--after {page['after']} shows them" in run(*mine, "--limit", "2")[1]
    assert "trip 1" not in run(*mine, "--agent", "a0")[1]
    assert run(*mine, "--state", "archived")[1] == f"The user {user_id} has no such conversation.\n"
    assert "The place of a page cannot be read" in refused(*mine, "--after", "nowhere")
    with Terminal(*mine, columns=40) as terminal:
        assert terminal.end() == 0
        assert max(map(cell_len, terminal.lines)) <= 40
        assert "…" in terminal.text


def test_a_pipe_that_closes_is_no_traceback(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage("said " * 20_000) for _ in range(20)])
    for more in ([], ["--json"]):
        command = [*PROGRAM, "show", "t", *caller, "--user", user_id, "--all", *more]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=surroundings()) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.read(10)
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 141


def test_an_output_of_another_encoding_shows_codes(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    """A pipe on Windows is one of them, and a Latin-1 locale."""
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage("Caf\u00e9 \u4f60\u597d \U0001f3fa")])
    command = [*PROGRAM, "show", "t", *caller, "--user", user_id]
    done = subprocess.run(
        command, capture_output=True, env={**surroundings(), "PYTHONIOENCODING": "latin-1"}, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"Caf\xe9 \\u4f60\\u597d \\U0001f3fa" in done.stdout


def test_an_output_that_is_full_or_closed_is_no_traceback(
    conn_string: str, user_id: str, caller: tuple[str, str]
) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage("said " * 20_000)])
    for command in (["show", "t", "--all"], ["conversations"]):
        words = [*PROGRAM, *command, *caller, "--user", user_id]
        with open("/dev/full", "wb") as full:
            done = subprocess.run(words, stdout=full, stderr=subprocess.PIPE, env=surroundings(), check=False)
        assert (done.returncode, done.stderr) == (1, b"The output could not be written: No space left on device.\n")
        shell = ["sh", "-c", '"$@" >&-', "sh", *words]
        closed = subprocess.run(shell, stderr=subprocess.PIPE, env=surroundings(), check=False)
        assert (closed.returncode, closed.stderr) == (0, b"")


def test_ctrl_c_in_the_middle_of_reading(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage("said " * 20_000) for _ in range(20)])
    with Terminal("show", "t", *caller, "--user", user_id, "--all") as terminal:
        terminal.until("said said")
        terminal.type("\x03")
        assert terminal.end() == 130
        assert "Traceback" not in terminal.text
        assert "Stopped by Ctrl-C." in terminal.text


def test_why_explains_an_answer(conn_string: str, user_id: str, caller: tuple[str, str]) -> None:
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        conversation = memory.conversation("studio")
        conversation.append([HumanMessage("My kiln shows E-47."), AIMessage("Noted.")])
        asked = HumanMessage("What now?")
        conversation.append([asked, AIMessage("Glaze it.")], pack=conversation.context(asked))
    of_it = (*caller, "--user", user_id)
    text = succeeded("why", "studio", "3", "kiln", "E-47", *of_it)
    assert text.startswith("Said in message 0.\nIn the prompt word for word.\n")
    document = json.loads(piped("why", "studio", "last", "E-47", "--json", *of_it).stdout)
    assert (document["answer"], document["was_in_prompt"], document["reasons"]) == (3, True, [])
    assert document["parts"][0]["first"] == 0
    assert "No prompt is stored for this answer" in refused("why", "studio", "1", "E-47", *of_it)
    assert "number of a message" in refused("why", "studio", "first", "E-47", *of_it)
