"""Redaction: redacted data is in no table, over any transport, and other data is not changed."""

from __future__ import annotations

import ast
import base64
import copy
import json
import logging
import re
from collections.abc import Callable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any
from uuid import uuid4

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langchain.agents import create_agent
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    ChatMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

import langchain_supabase_memory
from langchain_supabase_memory import (
    PERSONAL_DATA,
    SECRETS,
    ChunkPolicy,
    ContextBudget,
    MemoryConfig,
    Redactor,
    SaveTurnNode,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryMiddleware,
    SupabaseStore,
    record_stream,
)
from langchain_supabase_memory.errors import ConfigurationError, SupabaseMemoryError
from langchain_supabase_memory.language.messages import codec, content
from langchain_supabase_memory.language.messages.redaction.checksums import is_card, is_iban
from langchain_supabase_memory.language.messages.redaction.normalized_views import views
from langchain_supabase_memory.language.messages.redaction.payload import redact_value
from langchain_supabase_memory.models import SupabaseSummarizer
from langchain_supabase_memory.redaction import pattern_rule
from langchain_supabase_memory.settings import RetryPolicy
from tests.chat_models import calls, says
from tests.conftest import Caller
from tests.each_case import each_case
from tests.embedders import WordEmbedder
from tests.services.data_api import token

RULES = [*SECRETS, *PERSONAL_DATA]
ALL = Redactor(RULES)
JWT = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U"
PEM = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA" + "x1" * 60 + "\nab==\n-----END RSA PRIVATE KEY-----"
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
NO_RETRY = RetryPolicy(attempts=1)

FOUND = {
    "api key": [
        "sk-" + "aB3" * 16,
        "sk-proj-" + "aB3_" * 12,
        "sk-ant-api03-" + "aB3-" * 12,
        "ghp_" + "a1B2" * 9,
        "github_pat_" + "11ABC" * 10,
        "AKIAIOSFODNN7EXAMPLE",
        "xoxb-123456789012-abcdefGHIJ",
        "sb_secret_abcdEFGH1234567890",
        "AIzaSyA" + "1bC-" * 8,
        "glpat-abcDEF123_-456ghijk",
        "sk_live_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "whsec_" + "4eC39HqLyjWDarjtT1zdp7dc",
        "hf_" + "aB3" * 11,
    ],
    "jwt": [JWT],
    "private key": [
        PEM,
        PEM.replace("\n", "\\n"),
        PEM[:100],
        PEM.replace("RSA ", "ENCRYPTED "),
    ],
    "email": ["maya@studio.org", "Maya.Santos+kiln@mail.studio.com.ph", "ünï@bücher.example"],
    "phone": [
        "+63 917 123 4567", "+1 (555) 123-4567", "+442079460958", "(212) 555-0199", "212-555-0199", "0917-123-4567",
        "09171234567", "0151 23456789", "030/1234567", "06 12 34 56 78", "020 7946 0958", "0049 151 2345678",
    ],
    "card": [
        "4111111111111111", "4111 1111 1111 1111", "5500-0000-0000-0004", "378282246310005", "3782 822463 10005",
        "6011000990139424",
    ],
    "iban": ["DE89370400440532013000", "DE89 3704 0044 0532 0130 00", "GB29 NWBK 6016 1331 9268 19", "gb29nwbk60161331926819"],
    "ssn": ["123-45-6789", "123 45 6789"],
    "ip address": ["81.2.69.142", "175.16.199.37", "2a02:cf40::ff00:42:8329", "2a02:cf40::1", "2A02:cf40:0:0:0:0:0:1"],
}  # fmt: skip

PARTS = {
    "postgresql://postgres:hunter2@localhost:5432/postgres": "postgresql://postgres:[redacted: password]@localhost:5432/postgres",
    "redis://:s3cret@cache:6379/0": "redis://:[redacted: password]@cache:6379/0",
    "mysql://u:p@ss@db/x": "mysql://u:[redacted: password]@db/x",
    "password: hunter2": "password: [redacted: secret]",
    "password=hunter2&user=x": "password=[redacted: secret]&user=x",
    "Server=db;Password=hunter2;Database=x": "Server=db;Password=[redacted: secret];Database=x",
    'DB_PASSWORD="correct horse"': 'DB_PASSWORD="[redacted: secret]"',
    '{"password": "hunter2"}': '{"password": "[redacted: secret]"}',
    r"{\"api_key\": \"hunter2\"}": r"{\"api_key\": \"[redacted: secret]\"}",
    "token=abcdef": "token=[redacted: secret]",
    "my password is hunter2.": "my password is [redacted: secret].",
    "Passwort: geheim": "Passwort: [redacted: secret]",
    "Authorization: Bearer abcdefgh12345678": "Authorization: Bearer [redacted: credentials]",
    "https://hooks.slack.com/services/T00000000/B00000000/XXXXXXXXXXXXXXXXXXXXXXXX": "https://hooks.slack.com/[redacted: webhook]",
    "phone: 5551234567": "phone: [redacted: phone]",
    "ip=81.2.69.142": "ip=[redacted: ip address]",
    'host="81.2.69.142:80"': 'host="[redacted: ip address]:80"',
    "http://81.2.69.142/x": "http://[redacted: ip address]/x",
    "[::ffff:81.2.69.142]:80": "[[redacted: ip address]]:80",
    "password: my.secret1": "password: [redacted: secret]",
    "4111 1111 1111 1111 12/28": "[redacted: card] 12/28",
    "25 4111-1111-1111-1111": "25 [redacted: card]",
    "IBAN DE89 3704 0044 0532 0130 00 BIC": "IBAN [redacted: iban] BIC",
}  # fmt: skip

LEFT = [
    "2024-01-15", "15.01.2024", "01/02/2024", "2024-01-15T10:30:00Z", "12:34:56.789", "1,234,567.89 USD", "€1.234.567",
    "PHP 25 000", "order 100-200-3000", "SO-2024-00123", "#0012345678", "invoice 20240115001", "1700000000",
    "1700000000000", "9007199254740993", "3.14159265358979", "v1.2.3.4", "version 10.2.0.1", "langchain==1.2.3",
    "Chrome/120.0.0.0", "550e8400-e29b-41d4-a716-446655440000", "ISBN 978-3-16-148410-0", "4111111111111112",
    "DE89370400440532013001", "000-12-3456", "256.300.1.1", "127.0.0.1", "std::vector a[1::2]", "icon@2x.png", "@maya",
    "max_tokens=4096", "the password is wrong", "Is the password case-sensitive?", "token: a small unit of text",
    "password = os.environ['PASSWORD']", "password=${DB_PASSWORD}", "password: ******", "api_key=settings.api_key",
    'api_key="your-api-key"', "token = session.access_token", 'export API_KEY=OPENAI_API_KEY', 'version = "13.1.1.3"', "chars_per_token=4.0", "passwordless", "secretary: Ana",
    "sk-estimator-content-label", "disk-usage-of-the-whole-cluster", "http://localhost:8080/a/user@x", "cone 6 at 1222 °C",
    "E-47", "sha256:9f86d081884c7d659a2feaa0c55ad015", "sb_publishable_abcdEFGH1234567890",
]  # fmt: skip


@each_case(("name", "secret"), [(name, each) for name, listed in FOUND.items() for each in listed])
def test_what_is_looked_for_is_found(name: str, secret: str) -> None:
    assert ALL.redact(secret) == f"[redacted: {name}]"
    assert ALL.redact(f"It is {secret}, and it stays.") == f"It is [redacted: {name}], and it stays."
    assert ALL.redact(f'"{secret}"') == f'"[redacted: {name}]"'


@each_case(("text", "expected"), PARTS.items())
def test_of_what_is_assigned_the_value_goes(text: str, expected: str) -> None:
    assert ALL.redact(text) == expected


@each_case("text", LEFT)
def test_ordinary_text_is_left_alone(text: str) -> None:
    assert ALL.redact(text) == text
    sentence = f"We said {text} on Monday."
    assert ALL.redact(sentence) is sentence


KEY = FOUND["api key"][1]
OTHERWISE = {
    "maya＠studio.org": "[redacted: email]",
    "ｍａｙａ＠ｓｔｕｄｉｏ．ｏｒｇ": "[redacted: email]",
    "４１１１１１１１１１１１１１１１": "[redacted: card]",
    "４１１１ １１１１ １１１１ １１１１": "[redacted: card]",
    "٤١١١ ١١١١ ١١١١ ١١١١": "[redacted: card]",
    "4111\u20091111\u20091111\u20091111": "[redacted: card]",
    "4111\u20111111\u20111111\u20111111": "[redacted: card]",
    "4111\u00a01111\u00a01111\u00a01111": "[redacted: card]",
    "DE89\u202f3704\u202f0044\u202f0532\u202f0130\u202f00": "[redacted: iban]",
    "+63\u2011917\u2011123\u20114567": "[redacted: phone]",
    "123–45–6789": "[redacted: ssn]",
    "𝐬𝐤-proj-" + KEY[8:]: "[redacted: api key]",
    KEY[:9] + "\u200b" + KEY[9:]: "[redacted: api key]",
    KEY[:5] + "\u00ad" + KEY[5:]: "[redacted: api key]",
    "\u2060".join(KEY): "[redacted: api key]",
    "\u202e" + KEY[:20] + "\ufeff\u2069" + KEY[20:]: "\u202e[redacted: api key]",
    "maya\u200b@studio.org": "[redacted: email]",
    "note\u200b" + KEY: "note\u200b[redacted: api key]",
    "é²" + KEY: "é²[redacted: api key]",
    "see—123-45-6789": "see—[redacted: ssn]",
    "ｐａｓｓｗｏｒｄ：hunter2": "ｐａｓｓｗｏｒｄ：[redacted: secret]",
    r'Result: {"mail":"maya\u0040studio.org"} ok': 'Result: {"mail":"[redacted: email]"} ok',
    r'{"a": "{\"mail\": \"maya\\u0040studio.org\"}"': r'{"a": "{\"mail\": \"[redacted: email]\"}"',
    r"sk-proj\u002daB3_aB3_aB3_aB3_aB3_": "[redacted: api key]",
    "4111111111111111.0": "[redacted: card].0",
}  # fmt: skip


@each_case(("text", "expected"), OTHERWISE.items())
def test_what_is_written_otherwise_is_found_and_the_rest_stays_as_it_is_written(text: str, expected: str) -> None:
    assert ALL.redact(text) == expected
    around = "Ünï – ４２\u200b: {}, \u00ad“é” \u0663"
    assert ALL.redact(around.format(text)) == around.format(expected)
    assert ALL.redact(expected) == expected


@given(
    st.text(alphabet=st.sampled_from("ab1 ４é\u200b\u00ad\u2009—\\u0040＠"), max_size=30).map(
        lambda text: text + "\\u0041"
    ),
    st.data(),
)
@settings(max_examples=200, deadline=None)
def test_a_span_of_a_copy_is_where_the_same_stands_in_the_text(text: str, data: st.DataObject) -> None:
    for look in views(text):
        start = data.draw(st.integers(0, len(look.text)))
        end = data.draw(st.integers(start, len(look.text)))
        first, last = look.span(start, end)
        assert 0 <= first <= last <= len(text)
        # What is left of the piece when it is looked at in the same way is the same.
        made = [each.text for each in views(text[first:last])]
        assert look.text[start:end] in made


def test_rules_of_others_are_shown_the_text_and_the_copies() -> None:
    shown: list[str] = []

    def look(text: str) -> list[tuple[int, int]]:
        shown.append(text)
        return []

    redactor = Redactor([Broken(look)])
    redactor.redact("plain \\ u0040")
    redactor.redact("Café ＃４\u200b!")
    redactor.redact("[redacted: broken] é")
    filler = "\ufffc" * 18 + " é"
    assert shown == ["plain \\ u0040", "Café ＃４\u200b!", "Café #4\u200b!", "Café #4!", filler]
    assert Redactor([pattern_rule("ticket", "№—[0-9]+")]).redact("№—12, №—７") == "[redacted: ticket], №—７"
    assert redact_value({"ｐａｓｓｗｏｒｄ": "correct horse"}, ALL) == {"ｐａｓｓｗｏｒｄ": "[redacted: secret]"}


def encoded(text: str, encoding: str = "utf-8") -> str:
    return base64.b64encode(text.encode(encoding)).decode()


@each_case(
    "text",
    [
        f"data:text/plain;base64, my key is {KEY} and more",
        f"data:text/plain;base64,\nmy key\nis\n{KEY}",
        f"data:;base64,{KEY}",
        f"data:image/png;base64,{KEY}",
        "data:text/plain;base64,AKIAIOSFODNN7EXAMPLE",
        "data:image/png;base64,AKIAIOSFODNN7EXAMPLE",
        "data:image/png;base64,\nAKIAIOSFODNN7EXAMPLE",
    ],
)
def test_what_only_begins_like_a_data_url_is_looked_through(text: str) -> None:
    for message in (HumanMessage(text), HumanMessage([{"type": "image_url", "image_url": {"url": text}}])):
        row = json.dumps(codec.to_row(message, ALL))
        assert "[redacted: api key]" in row
        assert KEY not in row
        assert "AKIA" not in row


@each_case(
    "kind",
    [
        "text/plain",
        "",
        "TEXT/HTML;charset=utf-8",
        "application/json",
        "image/svg+xml",
        "image/png",
        "x/y",
        "application/pdf",
    ],
)
@each_case("around", ["{}", "![a]({}) and", '["{}", 1]', '{{"a": "{}"}}'])
def test_the_text_in_a_data_url_is_looked_through(kind: str, around: str) -> None:
    said = f"My key is {KEY}, and its name is Zoë."
    made = redact_value(around.format(f"data:{kind};base64,{encoded(said)}"), ALL)
    assert made == around.format(f"data:{kind};base64,{encoded(said.replace(KEY, '[redacted: api key]'))}")
    assert redact_value(made, ALL) == made


def test_text_in_a_file_is_looked_through_whatever_its_encoding() -> None:
    said = f"My key is {KEY}; Zoë has it."
    for encoding in ("utf-8", "latin-1", "utf-16"):
        for data in (encoded(said, encoding), encoded(said, encoding).rstrip("=")):
            assert redact_value(f"data:text/plain;base64,{data}", ALL) != f"data:text/plain;base64,{data}"
            (block,) = redact_value([{"type": "file", "mime_type": "text/plain", "base64": data}], ALL)
            assert base64.b64decode(block["base64"]).decode(encoding) == said.replace(KEY, "[redacted: api key]")
    short = {"type": "file", "file_data": encoded("AKIAIOSFODNN7EXAMPLE"), "filename": "a"}
    assert base64.b64decode(redact_value(short, ALL)["file_data"]) == b"[redacted: api key]"
    odd = Redactor([pattern_rule("odd", "odd")], lambda *_: "…")
    assert redact_value(f"data:text/plain;base64,{encoded('oddé', 'latin-1')}", odd).endswith(encoded("?é", "latin-1"))


def test_media_stay_with_the_breaks_of_their_lines() -> None:
    lines = base64.encodebytes(bytes(range(256)) * 4).decode().strip()
    for value in (f"data:image/png;base64,{lines}", f"data:image/png;base64,{lines}\n", f"data:application/pdf;name=a.pdf;base64,{PNG}",
                  {"type": "file", "mime_type": "text/plain", "base64": encoded("Nothing in it. " * 9)}):  # fmt: skip
        assert redact_value(value, ALL) == value


def test_under_a_telling_key_media_go_too() -> None:
    for data in (PNG, "hunter2", encoded("hunter2")):
        made = redact_value({"password": {"format": "raw", "data": data}}, ALL)
        assert made == {"password": {"format": "[redacted: secret]", "data": "[redacted: secret]"}}


def test_numbers_are_looked_at_however_they_are_written() -> None:
    said = {"whole": 4111111111111111, "float": 4111111111111111.0, "decimal": Decimal("4111111111111111")}
    message = HumanMessage("x", id="m", additional_kwargs={"numbers": said})
    data = codec.to_row(message, ALL)["payload"]["data"]
    assert data["additional_kwargs"]["numbers"] == dict.fromkeys(said, "[redacted: card]")
    assert redact_value('{"n": 4111111111111111.0}', ALL) == '{"n": "[redacted: card]"}'
    left = {"a": 1.5, "b": 4111111111111112.0, "c": 1e300, "d": 123456.0, "e": Decimal("4111.5"), "f": float("inf")}
    message = HumanMessage("x", id="m", additional_kwargs=left)
    assert codec.to_row(message, ALL) == codec.to_row(message)


def test_check_digits() -> None:
    assert is_card("4111111111111111")
    assert not is_card("4111111111111112")
    assert not is_card("0000000000000000")
    assert is_iban("DE89370400440532013000")
    assert not is_iban("DE89370400440532013001")
    assert not is_iban("XX89370400440532013000")


def test_of_finds_that_overlap_all_goes_under_the_longest() -> None:
    short, long, other = pattern_rule("short", "bcd"), pattern_rule("long", "cdefg"), pattern_rule("other", "xyz")
    assert Redactor([short, long, other]).redact("abcdefgh xyz") == "a[redacted: long]h [redacted: other]"
    first, second = pattern_rule("first", "abc"), pattern_rule("second", "cde")
    assert Redactor([second, first]).redact("abcde") == "[redacted: first]"


def test_the_marks_may_be_yours_and_the_same_gets_the_same() -> None:
    numbers: list[str] = []

    def replace(name: str, found: str) -> str:
        numbers.append(found)
        return f"[redacted: {name} {len(numbers)}]"

    redactor = Redactor(PERSONAL_DATA, replace)
    message = AIMessage(
        "a@x.org, b@x.org, a@x.org", id="m", tool_calls=[{"name": "f", "args": {"to": "a@x.org"}, "id": "c"}]
    )
    data = codec.to_row(message, redactor)["payload"]["data"]
    assert data["content"] == "[redacted: email 1], [redacted: email 2], [redacted: email 1]"
    assert data["tool_calls"][0]["args"] == {"to": "[redacted: email 1]"}
    assert redactor.redact(data["content"]) == data["content"]
    value = pattern_rule("badge", r"badge (?P<value>\d+)", lambda match: match["value"] != "0")
    assert Redactor([value]).redact("badge 0, badge 17") == "badge 0, badge [redacted: badge]"


def test_what_a_mark_uncovers_is_found_at_once() -> None:
    made = ALL.redact("maya@x.org+15551234567")
    assert made == "[redacted: email][redacted: phone]"
    assert ALL.redact("password: [redacted: secret]hunter2") == "password: [redacted: secret]"


PIECES = st.one_of(
    st.sampled_from([each for listed in FOUND.values() for each in listed] + list(PARTS) + LEFT),
    st.sampled_from(["[redacted: email]", "[redacted: ", "]", "password: ", "token=", '"', "'", " ", "", "\n", "\\n", "+", "@x.org"]),
    st.text(max_size=12),
)  # fmt: skip


@given(st.lists(PIECES, max_size=6), st.sampled_from(["", " ", ", ", "\n"]))
@settings(max_examples=300, deadline=None)
def test_what_was_redacted_stays_as_it_is(pieces: list[str], between: str) -> None:
    once = ALL.redact(between.join(pieces))
    assert ALL.redact(once) == once


@given(st.sampled_from([(name, each) for name, listed in FOUND.items() for each in listed]), st.text(max_size=20), st.text(max_size=20))  # fmt: skip
@settings(max_examples=200, deadline=None)
def test_a_secret_between_spaces_is_found_whatever_is_around(found: tuple[str, str], before: str, after: str) -> None:
    made = ALL.redact(f"{before} \n{found[1]}\n {after}")
    assert found[1] not in made


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.sampled_from(["plain", "maya@x.org", "sk-ant-" + "a1B2" * 6]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(["a", "b@x.org", "password"]), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@given(JSON)
@settings(max_examples=200, deadline=None)
def test_json_is_redacted_at_every_depth_and_only_once(value: Any) -> None:
    before = copy.deepcopy(value)
    made = redact_value(value, ALL)
    assert value == before
    written = json.dumps(made)
    assert "x.org" not in written
    assert "sk-ant" not in written
    assert redact_value(made, ALL) == made
    assert json.loads(redact_value(json.dumps(value), ALL)) == made


# Texts that make engines go back: 50,000 characters each, for which a rule that is quadratic takes half a minute.
@pytest.mark.timeout(10)
@pytest.mark.parametrize(
    "unit",
    ["a", "@", "a@", "a.", "4", "4 ", "4444 ", "+1", "+" + "1" * 37 + "x ", "de89 ", "-eyJ", "eyJaaaaaaaaa.", "://a:", ":",
     "-----BEGIN PRIVATE KEY-----", "password:", 'password:"', "sk-", "a:", "1.", "-", " ", "\\", "012 ", "(", "f" * 60,
     "maya@x.org ", "[redacted: email", '{"a":', "[", "\u200b", "4\u200b", "４", "４\u2009", "a＠", "—", "\\u0040", "a\\u0040",
     "\\\\u004", "data:", "data:text/plain;base64,", "data:a;a;base64,aGVsbG8g\n", "data:" + "a;" * 5],
)  # fmt: skip
def test_no_text_takes_for_ever(unit: str) -> None:
    text = unit * (50_000 // len(unit))
    assert len(ALL.redact(text)) > 0
    assert redact_value(text + "-----END PRIVATE KEY-----", ALL) is not None


class Broken:
    """A rule that fails, and tells what it saw."""

    name = "broken"

    def __init__(self, spans: Callable[[str], Any]) -> None:
        self._spans = spans

    def spans(self, text: str) -> Any:
        return self._spans(text)


def fails(text: str) -> Any:
    raise ValueError(f"cannot read {text}")


@each_case("spans", [fails, lambda _: [(0, 10**9)], lambda _: [(3, 1)], lambda _: None, lambda _: ["ab"]])
def test_a_rule_that_fails_is_named_and_its_text_is_not(spans: Callable[[str], Any]) -> None:
    with pytest.raises(
        ConfigurationError, match="'broken' failed .*nothing was stored.*Fix or remove the rule"
    ) as raised:
        codec.to_row(HumanMessage('{"a": "very-private"}', id="m"), Redactor([Broken(spans)]))
    assert "very-private" not in str(raised.value)
    assert raised.value.__cause__ is None
    assert raised.value.__context__ is None


def test_a_replacement_that_is_no_text_is_an_error() -> None:
    with pytest.raises(ConfigurationError, match="'email' failed"):
        Redactor(PERSONAL_DATA, lambda *_: None).redact("maya@x.org")  # type: ignore[arg-type]


@each_case("wrong", ["secrets", [str], ["email"], 7, [Broken]])
def test_what_is_no_rule_is_refused_at_once(wrong: Any) -> None:
    with pytest.raises(ConfigurationError):
        SupabaseMemory.from_conn_string("postgresql://x@127.0.0.1:1/x", redactor=wrong)


@each_case(
    "make",
    [lambda: pattern_rule("Bad]Name", "x"), lambda: pattern_rule("x", "("), lambda: pattern_rule("x", re.compile(b"x")),  # type: ignore[arg-type]
     lambda: Redactor(SECRETS, "***")],  # type: ignore[arg-type]
)  # fmt: skip
def test_what_makes_no_rule_is_refused(make: Callable[[], Any]) -> None:
    with pytest.raises(ConfigurationError):
        make()


def everywhere(secret: str) -> list[BaseMessage]:
    """The secret wherever a message can hold one."""
    nested = {
        "deep": [{"list": (secret, {secret: 1})}, {secret}, {1: secret, (2, secret): "x"}],
        "bytes": f"raw {secret}".encode(),
    }
    halves = secret[: len(secret) // 2], secret[len(secret) // 2 :]
    return [
        SystemMessage(f"Know {secret}", id="s"),
        HumanMessage(f"Here: {secret}", id="h1", name=secret),
        HumanMessage(
            [
                {"type": "text", "text": f"Look {secret}", "annotations": [{"title": secret}]},
                {"type": "image_url", "image_url": {"url": f"https://example.com/?q={secret}"}},
                {"type": "text-plain", "text": f"file of {secret}", "mime_type": "text/plain", "title": secret},
                {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": PNG}},
                f"bare {secret}",
            ],
            id="h2",
        ),
        HumanMessage([{"type": "text", "text": "Half: " + halves[0]}, {"type": "text", "text": halves[1]}], id="h3"),
        AIMessage(
            [
                {"type": "reasoning", "reasoning": f"They say {secret}", "extras": {"x": secret}},
                {"type": "thinking", "thinking": secret, "signature": "sig"},
                {"type": "tool_use", "id": "call_1", "name": "f", "input": {"a": [secret]}, "partial_json": f'{{"a": ["{secret}"]}}'},
                {"type": "non_standard", "value": nested},
            ],
            id="a1",
            tool_calls=[{"name": "f", "args": {"a": [secret], "n": {"b": {secret: secret}}}, "id": "call_1"}],
            invalid_tool_calls=[{"name": "g", "args": f'{{"a": "{secret}', "id": "call_2", "error": secret}],
            additional_kwargs={
                "tool_calls": [{"id": "call_1", "type": "function", "function": {"name": "f", "arguments": json.dumps({"a": f"x\n{secret}"})}}],
                "reasoning_content": secret,
            },
            response_metadata={"id": "resp_1", "echo": nested, "logprobs": {"content": [{"token": each} for each in secret]}},
            usage_metadata={"input_tokens": 5000000, "output_tokens": 7, "total_tokens": 5000007},
        ),
        ToolMessage(secret, tool_call_id="call_1", id="t1", name="f", artifact={"raw": nested, "text": secret}),
        ToolMessage([{"type": "text", "text": secret}], tool_call_id="call_2", id="t2", artifact=secret),
        ChatMessage(role=f"speaker {secret}", content=secret, id="c1"),
        AIMessageChunk(content=secret, id="k1", tool_call_chunks=[{"name": "f", "args": json.dumps({"a": secret}), "id": "call_3", "index": 0}]),
    ]  # fmt: skip


def canary() -> str:
    return f"sk-ant-api03-{uuid4().hex}A1"


@each_case("make", [canary, lambda: f"m{uuid4().hex}@studio.org", lambda: "DE89370400440532013000"])
def test_nothing_of_a_message_holds_it_and_the_message_stays(make: Callable[[], str]) -> None:
    secret = make()
    for message in everywhere(secret):
        before = message.model_copy(deep=True)
        row = codec.to_row(message, ALL)
        assert secret not in json.dumps(row, ensure_ascii=False), message.id
        assert base64.b64encode(f"raw {secret}".encode()).decode() not in json.dumps(row)
        assert secret[-12:] not in json.dumps(row), "not even a part of it"
        assert message == before
        restored = codec.from_payload(row["payload"])
        assert restored.id == message.id
        assert type(restored) is type(codec.from_payload(codec.to_row(message)["payload"]))
        assert content.words(restored) == row["text"], "what is shown is what is found"
        again = codec.to_row(restored, ALL)
        assert again == row, "what was read and comes back is not new"


def test_ids_media_numbers_and_structure_stay() -> None:
    secret = canary()
    rows = {message.id: codec.to_row(message, ALL)["payload"]["data"] for message in everywhere(secret)}
    a1 = rows["a1"]
    assert a1["tool_calls"] == [
        {
            "name": "f",
            "args": {"a": ["[redacted: api key]"], "n": {"b": {"[redacted: api key]": "[redacted: api key]"}}},
            "id": "call_1",
            "type": "tool_call",
        }
    ]
    assert json.loads(a1["additional_kwargs"]["tool_calls"][0]["function"]["arguments"]) == {
        "a": "x\n[redacted: api key]"
    }
    assert a1["response_metadata"]["id"] == "resp_1"
    assert a1["response_metadata"]["logprobs"] is None
    assert a1["usage_metadata"]["input_tokens"] == 5000000
    assert rows["h2"]["content"][3]["source"]["data"] == PNG
    assert rows["h1"]["name"] == "redacted_api_key", "a name that providers accept"
    assert rows["h3"]["content"] == [{"type": "text", "text": "Half: [redacted: api key]"}]
    assert rows["t2"]["tool_call_id"] == "call_2"
    # An id may look like anything.
    odd = ToolMessage("fine", id="maya@x.org", tool_call_id="+63 917 123 4567")
    assert codec.to_row(odd, ALL) == codec.to_row(odd)


def test_what_holds_nothing_is_stored_as_ever() -> None:
    url = f"data:image/png;base64,{PNG}"
    plain: list[BaseMessage] = [
        HumanMessage([{"type": "text", "text": ""}, {"type": "image_url", "image_url": {"url": url}}], id="1"),
        HumanMessage([{"type": "file", "base64": PNG + "sk+" * 4, "mime_type": "image/png"}, "x"], id="2"),
        AIMessage("fine", id="3", response_metadata={"logprobs": {"content": [{"token": "fine"}]}, "model_name": "m"}),
        ToolMessage('{"a": 1, "b":  [1.50, true]}', id="4", tool_call_id="c", artifact={"when": b"\xff\xfe", "n": 1.5}),
    ]
    for message in plain:
        assert codec.to_row(message, ALL) == codec.to_row(message)


def test_what_is_under_a_telling_key_goes_whole() -> None:
    args = {"password": "correct horse", "apiKey": 123456789, "credentials": {"user": "x", "list": [True, None]},
            "phone_number": "5551234567", "card": 4111111111111111, "max_tokens": 4096, "a": 1, "tokens": "fine"}  # fmt: skip
    assert redact_value(args, ALL) == {
        "password": "[redacted: secret]", "apiKey": "[redacted: secret]",
        "credentials": {"user": "[redacted: secret]", "list": [True, None]}, "phone_number": "[redacted: phone]",
        "card": "[redacted: card]", "max_tokens": 4096, "a": 1, "tokens": "fine",
    }  # fmt: skip
    assert redact_value({"a@x.org": 1, "b@x.org": 2}, ALL) == {"[redacted: email]": 1, "[redacted: email] (2)": 2}


def test_every_way_to_the_database_names_the_redactor() -> None:
    """Whoever adds a caller is told to."""
    asked = 0
    for path in Path(langchain_supabase_memory.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) in ("conversations.append", "codec.to_row"):
                asked += 1
                given = [*(each.arg for each in node.keywords), *map(ast.unparse, node.args)]
                assert any(each and each.endswith("redactor") for each in given), f"{path}:{node.lineno}"
    assert asked >= 4


# Against the database.


def stored(conn_string: str) -> str:
    """Every row of every table of ours, as text."""
    with psycopg.connect(conn_string) as connection:
        tables = connection.execute(
            "select format('%I.%I', schemaname, tablename) from pg_tables where schemaname in ('memory', 'memory_private')"
        ).fetchall()
        assert len(tables) > 8
        rows = [row for (name,) in tables for row in connection.execute(f"select t::text from {name} t".encode())]
    return "\n".join(str(row[0]) for row in rows)


def parrot(prompt: Sequence[BaseMessage]) -> str:
    """A summary that repeats all it was shown, as the worst of models would."""
    return " ".join(str(message.content) for message in prompt)[-3000:]


@pytest.fixture
def memory(conn_string: str, user_id: str) -> Iterator[SupabaseMemory]:
    with SupabaseMemory.from_conn_string(
        conn_string,
        user_id=user_id,
        model=parrot,
        embeddings=WordEmbedder(),
        budget=ContextBudget(characters=6000),
        config=MemoryConfig(policy=SummaryPolicy(keep_messages=2), chunking=ChunkPolicy(max_age=None)),
        retry=NO_RETRY,
        redactor=RULES,
    ) as memory:
        yield memory


def texts(memory: SupabaseMemory, thread_id: str = "t") -> list[str | None]:
    return [each.text for each in memory.conversation(thread_id).read(columns=["text"])]


async def test_a_secret_is_in_no_table_by_any_door(caller: Caller, conn_string: str, user_id: str) -> None:
    memory = SupabaseMemory(
        caller.service._services.transport,
        user_id=user_id,
        model=parrot,
        embeddings=WordEmbedder(),
        redactor=iter(RULES),
    )
    secret = canary()
    messages = everywhere(secret)
    conversation = memory.conversation("t")
    result = await caller(conversation.append, messages, metadata={"note": {"about": secret}, "via": "x"})
    assert result.appended == len(messages)
    await caller(conversation.add_turn, f"My key: {secret}", f"I heard {secret}.")
    history = SupabaseChatMessageHistory("t", memory)
    if caller.color == "sync":
        history.add_messages([HumanMessage(secret), AIMessage(secret)])
    else:
        await history.aadd_messages([HumanMessage(secret), AIMessage(secret)])
    acting = caller.as_token(token("authenticated", user_id))
    acting._services.redactor = memory._services.redactor
    await caller(acting.for_token(token("authenticated", user_id) if caller.kind == "data_api" else {"sub": user_id, "role": "authenticated"}).conversation("t").append,
               [HumanMessage(f"as a user: {secret}")])  # fmt: skip
    assert (await caller(conversation.summaries.make, policy=SummaryPolicy(keep_messages=1))).segments
    assert (await caller(conversation.index)).chunks >= 5
    assert await caller(conversation.summaries.index) >= 1
    pack = await caller(conversation.context, query=f"the key {secret}")
    assert secret not in str(pack.messages)
    dumped = stored(conn_string)
    assert user_id in dumped
    assert "[redacted: api key]" in dumped
    assert secret not in dumped
    assert secret[-20:].lower() not in dumped.lower(), "nor its lexeme"
    read = await caller(conversation.read, columns=["payload", "metadata"])
    assert len(read) == len(messages) + 5
    assert read[0].metadata == {"note": {"about": "[redacted: api key]"}, "via": "x"}


async def test_nor_what_a_person_writes_and_what_is_put_into_the_store(
    caller: Caller, conn_string: str, user_id: str
) -> None:
    memory = SupabaseMemory(
        caller.service._services.transport, user_id=user_id, model=parrot, embeddings=WordEmbedder(), redactor=RULES
    )
    secret = canary()
    conversation = memory.conversation("t")
    await caller(conversation.append, [HumanMessage("One."), AIMessage("Two."), HumanMessage("Three.")])
    added = await caller(conversation.board.add, "fact", f"The key is {secret}.", actor="ana")
    await caller(conversation.board.edit, added, actor="ana", text=f"The key was {secret}.")
    await caller(conversation.board.edit_summary, f"About the key {secret}.", actor="ana")
    (segment,) = (await caller(conversation.summaries.make, policy=SummaryPolicy(keep_messages=1))).segments
    await caller(conversation.summaries.edit, segment, f"They speak of {secret}.", actor="ana")
    store = SupabaseStore(memory)
    value = {"text": f"my key: {secret}", "password": "hunter2", "count": 3, "tags": [secret]}
    await caller(store.put, ("notes",), "k", value)
    board = await caller(conversation.board.read)
    assert [each.text for each in board.facts] == ["The key was [redacted: api key]."]
    assert (await caller(store.get, ("notes",), "k")).value == {
        "text": "my key: [redacted: api key]",
        "password": "[redacted: secret]",
        "count": 3,
        "tags": ["[redacted: api key]"],
    }
    dumped = stored(conn_string)
    assert secret not in dumped
    assert secret[-20:].lower() not in dumped.lower(), "nor its lexeme"


def test_without_redaction_it_would_be_there(conn_string: str, user_id: str) -> None:
    secret = canary()
    with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        memory.conversation("t").append([HumanMessage(secret, id="m")])
        assert secret in stored(conn_string)
        # A graph that still holds it and is given a redactor later heals the row, and what was made from it.
        memory.conversation("t").index()
        with SupabaseMemory.from_conn_string(conn_string, user_id=user_id, redactor=SECRETS) as careful:
            assert careful.conversation("t").append([HumanMessage(secret, id="m")]).updated == ["m"]
            careful.conversation("t").index()
        assert secret not in stored(conn_string)


def test_a_retry_is_a_retry_and_an_edit_an_edit(memory: SupabaseMemory, conn_string: str) -> None:
    secret, other = canary(), canary()
    messages = everywhere(secret)
    conversation = memory.conversation("t")
    assert conversation.append(messages).appended == len(messages)
    again = conversation.append(messages)
    assert (again.appended, again.updated) == (0, [])
    read = [each.message for each in conversation.read()]
    back = conversation.append(read)
    assert (back.appended, back.updated) == (0, [])
    edited = HumanMessage(f"Now it is {other}", id="h1")
    assert conversation.append([edited]).updated == ["h1"]
    assert conversation.append([edited]).updated == []
    assert edited.content == f"Now it is {other}"
    assert texts(memory)[1] == "Now it is [redacted: api key]"
    assert secret not in stored(conn_string)
    assert other not in stored(conn_string)


@tool
def fetch_key(what: str = "") -> str:
    """Fetch a key."""
    return json.dumps({"what": what, "password": "tool-hunter2", "key": SEEN[0]})


SEEN = [""]


@pytest.mark.parametrize("color", ["sync", "async"])
@pytest.mark.parametrize("saved", [True, False])
async def test_an_agent_keeps_its_words_and_the_tables_do_not(
    memory: SupabaseMemory, conn_string: str, color: str, saved: bool
) -> None:
    secret = SEEN[0] = canary()
    model = says(calls("fetch_key", what=f"for maya@studio.org, {secret}"), f"You have {secret}.")
    graph: Any = create_agent(
        model,
        [fetch_key],
        middleware=[SupabaseMemoryMiddleware(memory, recall="conversation", on_error="raise")],
        checkpointer=InMemorySaver() if saved else None,
    )
    for number in range(3):
        asked = {"messages": [HumanMessage(f"{number}: my key is {secret}, use it", id=f"h{number}")]}
        where: Any = {"configurable": {"thread_id": "t"}}
        await (graph.ainvoke(asked, where) if color == "async" else _now(graph.invoke(asked, where)))
        # The turn under way is shown to the model as it was said.
        assert secret in str(model.shown[-1][-1].content) or secret in str(model.shown[-1])
    conversation = memory.conversation("t")
    assert conversation.count() == 8
    assert texts(memory)[0] == "0: my key is [redacted: api key], use it"
    conversation.summaries.make()
    conversation.index()
    dumped = stored(conn_string)
    for each in (secret, "maya@studio.org,", "tool-hunter2"):
        assert each not in dumped
    if saved:
        held = graph.get_state(where).values["messages"]
        assert any(secret in str(message.content) for message in held), "the graph's own state is the graph's"
        result = conversation.append(held)
        assert (result.appended, result.updated) == (0, [])


async def _now(value: Any) -> Any:
    return value


def test_nodes_streams_and_summarizers_go_through_it(memory: SupabaseMemory, conn_string: str) -> None:
    secret = canary()
    config: Any = {"configurable": {"thread_id": "t"}}
    SaveTurnNode(memory, on_error="raise").invoke({"messages": [HumanMessage(f"node {secret}")]}, config)
    assert list(record_stream(memory, f"stream {secret}", [secret[:9], secret[9:]], thread_id="t", on_error="raise"))
    summary = SupabaseSummarizer(memory).invoke([HumanMessage(f"sum {secret}"), AIMessage("ok")], config)
    assert secret not in summary
    assert memory.conversation("t").count() == 5
    assert texts(memory) == [
        "node [redacted: api key]", "stream [redacted: api key]", "[redacted: api key]", "sum [redacted: api key]", "ok",
    ]  # fmt: skip
    assert secret not in stored(conn_string)


def test_what_waited_is_redacted_at_delivery(memory: SupabaseMemory, conn_string: str) -> None:
    secret = canary()
    key = memory._services.key("t")
    memory._services.outbox.keep(key, [HumanMessage(f"waited {secret}", id="w1")])
    SupabaseChatMessageHistory("t", memory, on_error="raise").add_messages([AIMessage(secret, id="w2")])
    memory._services.outbox.keep(key, [HumanMessage(f"flushed {secret}", id="w3")])
    assert memory.flush() == 0
    assert texts(memory) == ["waited [redacted: api key]", "[redacted: api key]", "flushed [redacted: api key]"]
    assert secret not in stored(conn_string)


def test_a_rule_that_fails_loses_nothing_and_stores_nothing(
    memory: SupabaseMemory, conn_string: str, caplog: pytest.LogCaptureFixture
) -> None:
    secret = canary()
    memory._services.redactor = Redactor([*SECRETS, Broken(fails)])
    with pytest.raises(ConfigurationError, match="'broken'"):
        memory.conversation("t").append([HumanMessage(secret)])
    history = SupabaseChatMessageHistory("t", memory)
    with caplog.at_level(logging.DEBUG):
        history.add_messages([HumanMessage(f"first {secret}")])
        graph: Any = create_agent(says("An answer."), middleware=[SupabaseMemoryMiddleware(memory)])
        answer = graph.invoke({"messages": [HumanMessage(f"second {secret}")]}, {"configurable": {"thread_id": "t"}})
    assert answer["messages"][-1].text == "An answer."
    assert isinstance(history.last_error, SupabaseMemoryError)
    assert "'broken' failed" in caplog.text
    assert secret not in caplog.text
    assert memory.conversation("t").count() == 0
    assert len(memory._services.outbox) == 3
    assert secret not in stored(conn_string)
    memory._services.redactor = Redactor(SECRETS)
    assert memory.flush() == 0
    assert texts(memory) == ["first [redacted: api key]", "second [redacted: api key]", "An answer."]


def test_another_user_of_the_memory_is_redacted_for_too(memory: SupabaseMemory, user_id: str) -> None:
    claims = {"sub": user_id, "role": "authenticated"}
    other = memory.for_token(claims)
    assert other._services.redactor is memory._services.redactor
    other.conversation("t").append([HumanMessage("I am maya@x.org")])
    assert texts(memory) == ["I am [redacted: email]"]


@given(texts_said=st.lists(st.lists(PIECES, min_size=1, max_size=4).map(" ".join), min_size=1, max_size=4))
@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_said_reads_back_and_comes_again_unchanged(memory: SupabaseMemory, texts_said: list[str]) -> None:
    thread_id = uuid4().hex
    messages = [HumanMessage(text, id=str(number)) for number, text in enumerate(texts_said)]
    conversation = memory.conversation(thread_id)
    conversation.append(messages)
    assert texts(memory, thread_id) == [codec.to_row(message, ALL)["text"] for message in messages]
    read = [each.message for each in conversation.read()]
    assert conversation.append(messages).updated == []
    assert conversation.append(read).updated == []
