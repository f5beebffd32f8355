"""Data within a text is named once and read by no rule; and no rule reads beyond its limit."""

from __future__ import annotations

import base64
import json
import random
import sys
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from langchain_supabase_memory import PERSONAL_DATA, SECRETS, Redactor
from langchain_supabase_memory.effects import Material, TranscriptLine
from langchain_supabase_memory.language import prompts, query_hints
from langchain_supabase_memory.language.chunks.units import StoredText, units
from langchain_supabase_memory.language.extractive import ExtractiveSummarizer
from langchain_supabase_memory.language.extractive.entities import find_names
from langchain_supabase_memory.language.extractive.phrases import ParsedText
from langchain_supabase_memory.language.messages import content, encoded_data, rendering
from langchain_supabase_memory.language.quality import quality
from tests.conftest import Caller
from tests.each_case import each_case

NOW: Final = datetime(2026, 3, 2, 9, tzinfo=UTC)
BYTES: Final = random.Random(1).randbytes(3_000)
CODED: Final = base64.b64encode(BYTES).decode()
CODE: Final = (
    "!function(e,t){'object'==typeof exports?module.exports=t():e.x=t()}(this,function(){var n=1;return n.a(t)});"
)
DUMP: Final = "\n".join(
    f"{at:08x}: {BYTES[at : at + 16].hex(' ', 2)}  {'.' * 16}" for at in range(0, 800, 16)
)  # as xxd writes it


@each_case(
    ("text", "wanted"),
    [
        (f"My kiln ![photo](data:image/png;base64,{CODED}) is cold", "My kiln ![photo]([data: 3 KB of image/png]) is cold"),
        (f"it says {CODED} here", "it says [data: 4 KB of base64] here"),
        ("a key:\n-----BEGIN-----\n" + "\n".join(textwrap.wrap(CODED, 64)) + "\n-----END-----\nthanks",
         "a key:\n-----BEGIN-----\n[data: 4 KB of base64]\n-----END-----\nthanks"),
        (f"digest {BYTES[:300].hex()} end", "digest [data: 600 bytes of hexadecimal] end"),
        (f"bytes {BYTES[:400].hex(' ')} end", "bytes [data: 1 KB of hexadecimal] end"),
        (f"$ xxd file\n{DUMP}\ndone", "$ xxd file\n[data: 3 KB of hexadecimal]\ndone"),
        ("vector [" + ", ".join(f"{each / 256:.8f}" for each in BYTES[:100]) + "] end", "vector [[data: 1 KB of numbers]] end"),
        ("file " + "\ufffd\x00\x01PK" * 100 + "\x00 end", "file [data: 701 bytes of binary] end"),
        (f"app.js:\n{CODE * 20}\nend", "app.js:\n[data: 2 KB of minified code]\nend"),
        (json.dumps({"image": CODED, "title": "My kiln"}), '{"image": "[data: 4 KB of base64]", "title": "My kiln"}'),
    ],
    ids=["data url", "base64", "wrapped", "hexadecimal", "bytes", "dump", "vector", "binary", "code", "json"],
)  # fmt: skip
def test_what_is_no_language_is_named_and_the_words_around_it_stay(text: str, wanted: str) -> None:
    assert encoded_data.without_data(text) == wanted
    assert encoded_data.without_data(wanted) == wanted


ROOT: Final = Path(__file__).parents[2]


@each_case(
    "text",
    [
        *(path.read_text() for path in [*sorted(ROOT.glob("*.md")), *sorted(ROOT.glob("docs/*.md"))]),
        *(path.read_text() for path in sorted(ROOT.glob("langchain_supabase_memory/language/**/*.toml"))[:40]),
        json.dumps([{"id": number, "name": f"Glaze {number}"} for number in range(300)], separators=(",", ":")),
        "\n".join(f"src/components/some/long/path/number-{number * 7919}/file" for number in range(50)),
        " ".join(str(number % 97) for number in range(2_000)),
        "".join(f"<tr><td>{number}</td><td>Maya</td></tr>" for number in range(500)),
        "記憶は会話の中で最も大切なものです。" * 300,
        "\x1b[32mINFO\x1b[0m started\n" * 300,
        *("a" * 4_000, "." * 4_000),
        "tags: " + ",".join(f"glaze-{number}" for number in range(400)),
    ],
)
def test_what_can_be_read_stays(text: str) -> None:
    assert encoded_data.without_data(text) is text


def test_a_very_long_text_is_its_beginning_and_its_end() -> None:
    text = "first " + "word " * 460_000 + "last"
    made = encoded_data.shorten_middle(text)
    assert len(made) == encoded_data.LONGEST
    assert made.startswith("first ")
    assert made.endswith(" last")
    assert "\n[… 1.3 MB left out …]\n" in made
    assert encoded_data.shorten_middle(text[:1_000]) == text[:1_000]


def of_length(kind: str, length: int) -> str:
    """A text of a kind with about so many characters, whose last word is whole."""
    unit = {
        "base64": CODED,
        "one line": "word Alice took 7 of them on 7 May 2023 ",
        "log": "2026-11-25 10:00:12 INFO worker 7 took 313 ms for /api/v1/7\n",
        "short lines": "ok it\n",
        "chinese": "记忆是对话中最重要的东西。",
        "emoji": "\U0001f600\U0001f44d\U0001f3fd",
        "one character": ".",
        "json": '{"id": 7, "name": "Maya"}, ',
        "html": "<p>The kiln of Maya is cold</p>",
        "questions": "Where is it? ",
        "german": "Der Ofen von Maya steht im Keller ",
    }[kind]
    return unit * (length // len(unit) + 1)


KINDS: Final = (
    "base64", "one line", "log", "short lines", "chinese", "emoji", "one character", "json", "html", "questions", "german",
)  # fmt: skip


def write(task: Any) -> Callable[[str], Any]:
    return lambda text: ExtractiveSummarizer().write(
        Material(task, None, [TranscriptLine(0, "user", None, text)], 2_000)
    )


READERS: Final[dict[str, Callable[[str], Any]]] = {
    "summary": write("summary"),
    "board": write("board"),
    "quality": lambda text: quality([TranscriptLine(0, "user", None, text)], text[:2_000]),
    "chunks": lambda text: units([StoredText(0, "m", HumanMessage(text), NOW)], max_tokens=256),
    "prompt": lambda text: prompts.pieces([(0, HumanMessage(text))], 24_000),
    "rendered": lambda text: rendering.render(HumanMessage(text)),
    "redaction": Redactor([*SECRETS, *PERSONAL_DATA]).redact,
    "question": lambda text: query_hints.find_hints(text, NOW),
    "marks": query_hints.marks,
    "days": lambda text: query_hints.relative_days(text, NOW.date()),
}


@pytest.mark.parametrize(
    "kind", [each if each in ("log", "chinese") else pytest.param(each, marks=pytest.mark.slow) for each in KINDS]
)
def test_of_four_megabytes_no_more_is_read_than_the_bound(kind: str) -> None:
    text = of_length(kind, 4_000_000)
    assert len(encoded_data.prose(text)) <= encoded_data.LONGEST
    assert len(encoded_data.words_only(text)) <= encoded_data.LONGEST
    pieces = prompts.pieces([(0, HumanMessage(text))], 24_000)
    assert sum(len(line.text) for piece in pieces for line in piece.lines) <= encoded_data.LONGEST


@pytest.mark.slow
@each_case("reader", READERS)
def test_beyond_the_bound_a_longer_text_is_no_more_work(reader: str, monkeypatch: pytest.MonkeyPatch) -> None:
    longest = encoded_data.LONGEST
    with monkeypatch.context() as patched:
        if reader in ("summary", "board", "quality", "chunks"):  # a million characters are twenty seconds of steps
            longest //= 10
            patched.setattr(encoded_data.shorten_middle, "__defaults__", (longest,))
        few, many = (steps(READERS[reader], of_length("log", times * longest)) for times in (2, 4))
    assert many <= few * 1.1 + 1_000


@each_case("kind", KINDS)
def test_below_the_bound_work_grows_no_faster_than_the_text(kind: str) -> None:
    for reader, read in READERS.items():
        few, many = (steps(read, of_length(kind, length)) for length in (2_000, 8_000))
        assert many <= 6 * few + 1_000, reader


def test_a_line_is_looked_at_from_its_beginning_alone() -> None:
    """From each of its characters on, a paragraph would be read to its end: a second for a megabyte of them."""
    line = "The kiln is blue. " * 100
    assert encoded_data._CODE_LINE.match(line) is not None
    assert encoded_data._CODE_LINE.match(line, 1) is None
    assert encoded_data._CODE_LINE.findall(f"short\n{line}\n\n{line}") == [line, line]


def test_what_says_sooner_that_a_text_has_no_data_misses_none() -> None:
    chance = random.Random(4)
    for _ in range(20_000):
        pair = chance.choice(("", "0x", "\\x")) + chance.choice(("a7", "F0", "09"))
        text = "".join(pair + chance.choice(" ,:;|\n\r\t") * chance.randrange(4) for _ in range(17))
        number = f"{chance.randrange(-999, 999)}.{chance.randrange(10**4, 10**9)}{chance.choice((', ', ';', ' '))}" * 9
        for given, run, sooner in (
            (text, encoded_data._BYTES, encoded_data._IS_BYTES),
            (number, encoded_data._NUMBERS, encoded_data._IS_NUMBER),
        ):
            assert run.search(given) is not None
            assert sooner.search(given) is not None


def steps(function: Callable[[str], Any], text: str) -> int:
    """How many calls a function makes."""
    made = 0

    def count(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    function(text[:1_000])  # what is read from files once is read
    sys.setprofile(count)
    try:
        function(text)
    finally:
        sys.setprofile(None)
    return made


def test_names_in_a_language_of_capital_nouns_are_told_in_one_look(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    every = ParsedText.all

    def counted(self: ParsedText, *kinds: str) -> Any:
        nonlocal looks
        looks += 1
        return every(self, *kinds)

    monkeypatch.setattr(ParsedText, "all", counted)
    text = "und der Ofen von Maya und die Glasur " * 200
    list(find_names(text, ParsedText(text)))
    assert looks == 1


@pytest.mark.parametrize("caller", ["direct-sync"], indirect=True)
async def test_data_in_a_text_is_in_no_chunk_and_in_no_later_prompt(caller: Caller, user_id: str) -> None:
    conversation = caller.service.for_user(user_id).conversation("t")
    said = f"Here is my kiln ![photo](data:image/png;base64,{CODED * 30}) what is wrong with it?"
    read = AIMessage("", tool_calls=[{"name": "read_file", "args": {}, "id": "1"}])
    await caller(
        conversation.append,
        [
            HumanMessage(said),
            AIMessage("The element."),
            read,
            ToolMessage(CODED * 40, tool_call_id="1"),
            AIMessage("Read."),
        ],
    )
    stored = await caller(conversation.read)
    assert stored[0].message.content == said, "what is stored stays as it is"
    await caller(conversation.index)
    chunks = await caller(conversation.chunks.list)
    assert len(chunks) <= 5
    assert not any(CODED[:60] in each.content for each in chunks)
    assert any("[data: 90 KB of image/png]" in each.content and "what is wrong" in each.content for each in chunks)
    pack = await caller(conversation.context, "What was wrong with the kiln?")
    assert not any(CODED[:60] in str(message.content) for message in pack.prompt)


def test_a_message_of_data_is_named_where_it_is_read_and_whole_where_it_is_sent() -> None:
    message = ToolMessage(CODED * 100, tool_call_id="1")
    assert content.prose_text(message)[0] == "[data: 400 KB of base64]"
    assert content.text_and_names(message)[0] == CODED * 100
    [piece] = prompts.pieces([(0, message)], 24_000)
    assert "[data: 400 KB of base64]" in piece.text
    assert ExtractiveSummarizer().write(Material("summary", None, piece.lines, 500)).count("\n") == 0
