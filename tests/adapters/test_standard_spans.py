"""Standard spans: names of OpenTelemetry's registry, and texts only if its variable says so."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from langchain_supabase_memory import SupabaseMemory, SupabaseStore
from langchain_supabase_memory.adapters.transports.endpoint_info import of_data_api, of_postgres
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.memory import instrumentation, standard_spans
from langchain_supabase_memory.redaction import PERSONAL_DATA
from langchain_supabase_memory.settings import NO_RETRY
from tests.conftest import Caller
from tests.services.data_api import DataApi

PACKAGE = Path(standard_spans.__file__).parents[1]
REGISTRY = json.loads((Path(__file__).parents[1] / "cases" / "genai_memory_registry.json").read_text())
CANARY = "canary-4711"
CONTENT = {name for name, level in REGISTRY["attributes"].items() if level == "opt_in"}


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(instrumentation, "_tracer", lambda: provider.get_tracer(instrumentation.SCOPE))
    monkeypatch.delenv(standard_spans.CAPTURE, raising=False)
    yield exporter
    provider.shutdown()


def standard(spans: InMemorySpanExporter) -> dict[str, Mapping[str, Any]]:
    """The attributes of standard spans, by our own operation."""
    found: dict[str, Mapping[str, Any]] = {}
    for span in spans.get_finished_spans():
        given = span.attributes or {}
        if standard_spans.OPERATION in given:
            assert span.name == given[standard_spans.OPERATION]
            found[str(given["supabase_memory.operation"])] = given
    return found


async def use(caller: Caller, user_id: str, *, redacts: bool = False) -> None:
    transport = caller.service._services.transport
    memory = SupabaseMemory(transport, user_id=user_id, redactor=[*PERSONAL_DATA] if redacts else None)
    call = Caller(caller.kind, caller.color, memory, caller.as_token)
    thread = memory.conversation("t")
    await call(thread.append, [HumanMessage(f"The kiln shows {CANARY}. Write to maya@example.org.", id="m1")])
    await call(thread.index)
    await call(thread.recall, f"Which kiln shows {CANARY} for maya@example.org?")
    await call(thread.context, "And now?", query=f"kiln {CANARY}")
    await call(thread.find, CANARY)
    await call(thread.count)
    store = SupabaseStore(memory)
    await call(store.put, ("memories", "maya"), "k", {"text": CANARY})
    await call(store.search, ("memories",), query=CANARY)
    await call(thread.forget_message, "m1")


def test_every_name_is_one_of_the_registry() -> None:
    ours = {
        value
        for name, value in vars(standard_spans).items()
        if name.isupper() and isinstance(value, str) and value.startswith(("gen_ai.", "server."))
    }
    assert ours <= set(REGISTRY["attributes"])
    assert set(standard_spans._OPERATIONS) | set(standard_spans._STORE_OPERATIONS.values()) <= set(
        REGISTRY["operations"]
    )


def test_every_verb_is_one_that_runs() -> None:
    functions = [
        each
        for path in PACKAGE.rglob("*.py")
        for each in ast.walk(ast.parse(path.read_text()))
        if isinstance(each, ast.FunctionDef) and each.returns is not None
    ]
    flows = {each.name.lstrip("_") for each in functions if ast.unparse(each.returns or each).startswith("Flow[")}
    assert set(standard_spans._OPERATION_OF) <= flows


async def test_operations_have_standard_names_and_no_texts(
    caller: Caller, user_id: str, spans: InMemorySpanExporter
) -> None:
    await use(caller, user_id)
    found = standard(spans)
    assert {verb: given[standard_spans.OPERATION] for verb, given in found.items()} == {
        "append": "upsert_memory",
        "recall": "search_memory",
        "context": "search_memory",
        "find": "search_memory",
        "perform": "search_memory",
        "forget_message": "delete_memory",
    }
    assert found["append"][standard_spans.STORE_ID] == "t"
    assert found["append"][standard_spans.RECORD_COUNT] == 1
    assert found["recall"][standard_spans.RECORD_COUNT] == 1
    assert found["forget_message"][standard_spans.RECORD_ID] == "m1"
    endpoint = caller.service._services.transport.endpoint
    for given in found.values():
        assert given[standard_spans.SERVER_ADDRESS] == endpoint.host
        assert given.get(standard_spans.SERVER_PORT) == endpoint.port
    for span in spans.get_finished_spans():
        given = span.attributes or {}
        names = {name for name in given if not name.startswith("supabase_memory.")}
        assert names <= set(REGISTRY["attributes"]) - CONTENT
        assert (span.kind is SpanKind.CLIENT) == (
            standard_spans.OPERATION in given and given["supabase_memory.operation"] != "perform"
        )
        assert CANARY not in span.to_json()
        assert user_id not in given.values()


def test_the_address_of_a_server_is_its_host_and_port(conn_string: str, data_api: DataApi) -> None:
    for parts, host, port in (
        ({"host": "db.example.com", "user": "u", "password": CANARY}, "db.example.com", 5432),
        ({"host": "10.1.2.80", "port": "6543"}, "10.1.2.80", 6543),
        ({"hostaddr": "::1"}, "::1", 5432),
        ({}, "localhost", 5432),
        ({"host": "/tmp/run", "port": "5433"}, "/tmp/run/.s.PGSQL.5433", None),
        ({"host": "a.example.com,b.example.com", "port": "5432,5433"}, None, None),
    ):
        found = of_postgres(parts, is_pooled=None)
        assert (found.host, found.port) == (host, port)
    for url, host, port in (
        ("https://abc.supabase.co/rest/v1", "abc.supabase.co", 443),
        ("http://[::1]/rest/v1", "::1", 80),
        (data_api.url, "127.0.0.1", int(data_api.url.rpartition(":")[2].rstrip("/"))),
    ):
        found = of_data_api(url, url)
        assert (found.host, found.port) == (host, port)
    with SupabaseMemory.from_conn_string(conn_string) as memory:
        assert str(memory._services.transport.endpoint.port) in conn_string


def test_a_server_that_cannot_be_reached_is_named_too(spans: InMemorySpanExporter, user_id: str) -> None:
    address = f"postgresql://u:{CANARY}@127.0.0.1:1/d?connect_timeout=2"
    memory = SupabaseMemory.from_conn_string(address, user_id=user_id, retry=NO_RETRY)
    with memory, pytest.raises(SupabaseMemoryError):
        memory.conversation("t").append([HumanMessage("Hello")])
    given = standard(spans)["append"]
    assert (given[standard_spans.SERVER_ADDRESS], given[standard_spans.SERVER_PORT]) == ("127.0.0.1", 1)
    assert CANARY not in str([span.to_json() for span in spans.get_finished_spans()])


@pytest.mark.parametrize(
    ("value", "captures"),
    [("true", True), ("SPAN_ONLY", True), ("span_and_event", True), ("EVENT_ONLY", False), ("NO_CONTENT", False)],
)
def test_the_variable_of_the_conventions_decides(monkeypatch: pytest.MonkeyPatch, value: str, captures: bool) -> None:
    monkeypatch.setenv(standard_spans.CAPTURE, value)
    assert standard_spans.captures_content() is captures


async def test_texts_are_recorded_on_request_and_without_what_is_redacted(
    caller: Caller,
    user_id: str,
    spans: InMemorySpanExporter,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setenv(standard_spans.CAPTURE, "SPAN_ONLY")
    await use(caller, user_id, redacts=True)
    assert "An observation failed" not in caplog.text
    found = standard(spans)
    assert CANARY in found["recall"][standard_spans.QUERY]
    assert found["find"][standard_spans.QUERY] == CANARY
    for verb in ("append", "recall", "find", "perform"):
        records = json.loads(found[verb][standard_spans.RECORDS])
        for record in records:
            assert set(REGISTRY["record"]["required"]) <= set(record)
            assert set(record) <= {*REGISTRY["record"]["required"], *REGISTRY["record"]["optional"]}
            assert CANARY in json.dumps(record["content"])
    assert all("maya@example.org" not in span.to_json() for span in spans.get_finished_spans())
