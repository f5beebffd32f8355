"""Telemetry: metrics, spans and log lines describe operations and never contain message text."""

from __future__ import annotations

import ast
import asyncio
import http.client
import json
import logging
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import psycopg
import pytest
from click.testing import CliRunner
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.tools import ToolException
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from langchain_supabase_memory import (
    ContextBudget,
    MemoryConfig,
    SummaryPolicy,
    SupabaseChatMessageHistory,
    SupabaseMemory,
    SupabaseMemoryError,
    SupabaseStore,
    effects,
)
from langchain_supabase_memory.adapters.telemetry import logs
from langchain_supabase_memory.adapters.telemetry.alerts import Alert, alert, of_quality
from langchain_supabase_memory.adapters.telemetry.metrics import NO_METRICS, NoMetrics
from langchain_supabase_memory.agents.run.fail_open import FailOpen, GuardedTask
from langchain_supabase_memory.cli.application import commands
from langchain_supabase_memory.effects import Call, Flow, ModelStep, call, embed
from langchain_supabase_memory.errors import ConfigurationError, UnavailableError
from langchain_supabase_memory.memory import flow_observer, instrumentation, messages, outbox_delivery
from langchain_supabase_memory.memory.outbox_delivery import flush_and_append
from langchain_supabase_memory.models import EmbeddingModel
from langchain_supabase_memory.operations.work import Outcome
from langchain_supabase_memory.telemetry import Metrics, MetricsServer
from langchain_supabase_memory.tools import get_turn_tool, search_conversation_history_tool
from langchain_supabase_memory.types import ConversationKey
from langchain_supabase_memory.values import Cause, Health
from langchain_supabase_memory.worker import cleanup
from tests.conftest import Caller
from tests.embedders import ScriptedEmbedder, WordEmbedder
from tests.stepping import Answers

pytestmark = pytest.mark.both_colors("each way in counts and times its calls itself")

NAMES = {
    "summaries_generated_total": "counter",
    "working_memory_chunks_created": "gauge",
    "working_memory_searches_total": "counter",
    "vector_search_queries_total": "counter",
    "summary_generation_duration_seconds": "histogram",
    "working_memory_search_latency_ms": "histogram",
    "vector_search_latency_ms": "histogram",
    "summary_token_count": "histogram",
    "context_tokens_used": "histogram",
    "context_tokens_saved": "histogram",
    "context_quality_score": "histogram",
    "vector_index_size_mb": "gauge",
    "reranks_total": "counter",
    "rerank_duration_seconds": "histogram",
    "memory_queue_depth": "gauge",
    "memory_queue_lag_seconds": "gauge",
    "memory_leases": "gauge",
    "memory_dead": "gauge",
    "memory_retries_total": "counter",
    "memory_pieces_total": "counter",
    "memory_alerts_total": "counter",
    "memory_signals_total": "counter",
    "memory_topic_episodes_total": "counter",
    "memory_topic_reclusterings_total": "counter",
    "memory_advice_total": "counter",
}
CANARY = "canary-4711"
ROOT = Path(__file__).parents[2]


def numbers(metrics: NoMetrics) -> dict[str, float]:
    """What a scrape reads: by name, with the labels in their order."""
    body, _ = metrics.render()
    return {
        sample.name + "".join(f"/{value}" for value in sample.labels.values() if not sample.name.endswith("_bucket")): (
            sample.value
        )
        for family in text_string_to_metric_families(body.decode())
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


def talk(count: int) -> list[BaseMessage]:
    return [
        each for n in range(count) for each in (HumanMessage(f"kiln {n} " * 20), AIMessage(f"thermocouple {n} " * 20))
    ]


@pytest.fixture
def metrics() -> Metrics:
    return Metrics()


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(instrumentation, "_tracer", lambda: provider.get_tracer(instrumentation.SCOPE))
    yield exporter
    provider.shutdown()


@pytest.fixture
def seen(caller: Caller, user_id: str, metrics: Metrics) -> Caller:
    """A caller whose memory writes summaries, embeds and is counted."""
    made = SupabaseMemory(
        caller.service._services.transport,
        user_id=user_id,
        model=lambda _: "The kiln shows E-47.",
        embeddings=WordEmbedder(),
        config=MemoryConfig(metrics=metrics),
    )
    return Caller(caller.kind, caller.color, made, caller.as_token)


# --- Metrics


def test_every_metric_is_there_under_its_very_name(metrics: Metrics) -> None:
    metrics.piece("done")
    metrics.alert("dead")
    metrics.signals_found("thanks", 1)
    metrics.advised("budget")
    metrics.reranked(0.1, is_ordered=True)
    metrics.context_used(10, -5, 0.5)
    body, content_type = metrics.render()
    assert content_type.startswith("text/plain")
    lines = body.decode().splitlines()
    typed = {line.split()[2]: line.split()[3] for line in lines if line.startswith("# TYPE")}
    assert typed == NAMES
    shown = {line.split("{")[0].split(" ")[0] for line in lines if not line.startswith("#")}
    assert {name for name, kind in NAMES.items() if kind != "histogram"} <= shown
    assert not [name for name in shown if name.endswith("_created") and name not in NAMES]
    assert numbers(metrics)["context_tokens_saved_sum"] == 0  # a histogram's sum must not fall


def test_the_page_has_a_row_for_each_metric() -> None:
    page = (ROOT / "docs" / "observability.md").read_text(encoding="utf-8")
    table = page.partition("| metric | kind | what |")[2].partition("\n\n")[0]
    told: dict[str, str] = {}
    for names, kinds in re.findall(r"^\| (`.+?) \| ([\w, ]+) \|", table, re.MULTILINE):
        found, listed = re.findall(r"`(\w+)", names), kinds.split(", ")
        told |= zip(found, listed if len(listed) > 1 else listed * len(found), strict=True)
    assert told == NAMES


def test_each_event_is_reported_by_something() -> None:
    counted = {name for name, value in vars(NoMetrics).items() if callable(value) and not name.startswith("_")}
    called = {
        node.func.attr
        for path in (ROOT / "langchain_supabase_memory").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and "metrics" in ast.unparse(node.func)
    }
    assert counted - called == set()


def test_events_are_counted(metrics: Metrics) -> None:
    metrics.summary_generated(1.5, 120, 0.9)
    metrics.board_revised(0.7)
    metrics.board_revised()
    metrics.chunks_created(3)
    metrics.chunks_created(2)
    metrics.signals_found("thanks", 2)
    metrics.topics_assigned(4)
    metrics.topics_reclustered()
    metrics.advised("budget")
    metrics.searched(12.0, True, 8.0)
    metrics.searched(4.0, False)
    metrics.queue(5, 2.5, 1, 0)
    metrics.retried()
    metrics.piece("done")
    metrics.alert("dead")
    metrics.index_size(1.25)
    read = numbers(metrics)
    assert read["summaries_generated_total"] == 1
    assert read["summary_generation_duration_seconds_sum"] == 1.5
    assert read["summary_token_count_sum"] == 120
    assert read["context_quality_score_sum/summary"] == 0.9
    assert (read["context_quality_score_sum/board"], read["context_quality_score_count/board"]) == (0.7, 1)
    assert read["working_memory_chunks_created"] == 5
    assert (read["working_memory_searches_total"], read["working_memory_search_latency_ms_sum"]) == (2, 16)
    assert (read["vector_search_queries_total"], read["vector_search_latency_ms_sum"]) == (1, 8)
    assert (read["memory_queue_depth"], read["memory_queue_lag_seconds"]) == (5, 2.5)
    assert (read["memory_leases"], read["memory_dead"], read["memory_retries_total"]) == (1, 0, 1)
    assert (read["memory_pieces_total/done"], read["memory_alerts_total/dead"]) == (1, 1)
    assert read["vector_index_size_mb"] == 1.25
    assert (read["memory_signals_total/thanks"], read["memory_advice_total/budget"]) == (2, 1)
    assert (read["memory_topic_episodes_total"], read["memory_topic_reclusterings_total"]) == (4, 1)


def test_a_registry_of_ones_own_is_used_and_refuses_a_second() -> None:
    registry = CollectorRegistry()
    Metrics(registry).retried()
    assert registry.get_sample_value("memory_retries_total") == 1
    with pytest.raises(ConfigurationError, match="Make one Metrics"):
        Metrics(registry)


def test_without_the_package_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigurationError, match=r"langchain-supabase-memory\[metrics\]"):
        Metrics()
    assert NO_METRICS.render()[0] == b""


def test_nothing_counts_as_nothing() -> None:
    for name in vars(NoMetrics):
        if not name.startswith("_") and name != "measures":
            assert name in vars(Metrics), name
    NO_METRICS.summary_generated(1, 1)
    NO_METRICS.queue(1, 1, 1, 1)


def test_a_memory_does_without_the_optional_packages() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None; sys.modules['prometheus_client'] = None\n"
        "from langchain_supabase_memory.memory import instrumentation\n"
        "from langchain_supabase_memory.effects import call, run\n"
        "from tests.stepping import Answers\n"
        "print(run(call('memory_schema', {}), Answers(lambda _: 'done')), instrumentation._tracer())"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["done", "None"]


# --- What a memory does, counted


async def test_what_is_done_is_counted_by_every_door(seen: Caller, metrics: Metrics) -> None:
    memory = seen.service
    conversation = memory.conversation("t")
    await seen(conversation.append, talk(20))
    made = await seen(conversation.summaries.make, policy=SummaryPolicy(keep_messages=4))
    done = await seen(conversation.index)
    await seen(conversation.recall, "which kiln")
    await seen(conversation.summaries.index)
    await seen(memory.recall_summaries, "which kiln")
    budget = ContextBudget(characters=6_000)
    pack = await seen(conversation.context, "And now?", query="which kiln", budget=budget)
    report = pack.report()
    read = numbers(metrics)
    assert read["summaries_generated_total"] == len(made.segments) >= 1
    assert read["summary_generation_duration_seconds_count"] == len(made.segments)
    assert read["summary_token_count_sum"] == sum(each.tokens for each in conversation.summaries.list())
    assert read["working_memory_chunks_created"] == done.chunks > 0
    assert read["working_memory_searches_total"] == 2
    assert read["vector_search_queries_total"] == 3  # the two, and that of summaries
    assert (read["working_memory_search_latency_ms_count"], read["vector_search_latency_ms_count"]) == (2, 3)
    assert read["context_tokens_used_sum"] == report.tokens
    assert read["context_tokens_saved_sum"] == report.saved_tokens > 0
    assert read["context_quality_score_sum/pack"] == 1


async def test_signals_topics_and_advice_are_counted_where_they_are_made(
    seen: Caller, metrics: Metrics, conn_string: str
) -> None:
    memory = seen.service
    conversation = memory.conversation("told")
    await seen(conversation.opt_out, "kiln", actor="ana")
    said = ("Thanks, that worked.", "That's wrong, I meant the lid.", "Thanks for the kiln.", "Great, thanks!")
    await seen(conversation.append, [each for text in said for each in (HumanMessage(text), AIMessage("Noted."))])
    await seen(conversation.index)
    listed = await seen(conversation.turns.signals)
    updated = await seen(memory.topics.update)
    assert await seen(memory.topics.recluster)
    read = numbers(metrics)
    by_name = Counter(each.signal.label for each in listed)
    assert by_name == {"thanks": 2, "correction": 1}
    assert {name: read[f"memory_signals_total/{name}"] for name in by_name} == by_name
    assert read["memory_topic_episodes_total"] == updated.episodes > 0
    assert read["memory_topic_reclusterings_total"] == updated.owners + 1

    with psycopg.connect(conn_string, autocommit=True) as connection:
        connection.execute(
            "insert into memory.usage_days (user_id, agent_id, day, packs, failures, recalls, recalls_empty)"
            " values (%s, 'default', current_date, 60, 30, 60, 50)", [memory.user_id],
        )  # fmt: skip
    advice = await seen(memory.advice)
    read = numbers(metrics)
    assert {each.rule for each in advice} == {"recall", "failures"}
    assert {each.rule: read[f"memory_advice_total/{each.rule}"] for each in advice} == {each.rule: 1 for each in advice}


class Clock:
    """A clock that only tests move."""

    now = 0.0

    def perf_counter(self) -> float:
        return self.now

    def move(self, seconds: float, answer: Any) -> Any:
        self.now += seconds
        return answer


class SlowAnswers(Answers):
    """Answers whose calls take two seconds, and whose embedder takes five."""

    def __init__(self, clock: Clock, metrics: NoMetrics) -> None:
        super().__init__(lambda _: clock.move(2, {"by_meaning": True}), metrics)
        self._clock = clock

    def answering(self, step: ModelStep) -> AbstractContextManager[Any]:
        return nullcontext(SimpleNamespace(answer=lambda _: self._clock.move(5, [[1.0]])))


def test_a_search_takes_the_time_of_its_embedding_and_a_vector_search_only_the_databases(
    metrics: Metrics, monkeypatch: pytest.MonkeyPatch
) -> None:
    def searched() -> Flow[None]:
        yield from embed(["which kiln"], is_query=True)
        yield from call("memory_recall", {}, "recall")
        yield from call("memory_recall", {}, "recall")  # for which nothing is embedded again

    clock = Clock()
    monkeypatch.setattr(flow_observer, "time", clock)
    effects.run(searched(), SlowAnswers(clock, metrics))
    read = numbers(metrics)
    assert read["working_memory_search_latency_ms_sum"] == (5 + 2 + 2) * 1_000
    assert read["vector_search_latency_ms_sum"] == (2 + 2) * 1_000


async def test_a_summary_inside_of_another_operation_counts_too(seen: Caller, metrics: Metrics) -> None:
    memory = seen.service
    await seen(memory.conversation("t").append, talk(20))
    pack = await seen(memory.conversation("t").context, budget=ContextBudget(characters=2000))
    assert pack.summary is not None
    assert numbers(metrics)["summaries_generated_total"] == pack.summary.number


async def test_what_a_pack_omits_lowers_its_quality(seen: Caller, metrics: Metrics) -> None:
    memory = seen.service
    await seen(memory.conversation("t").append, talk(20))
    background = SummaryPolicy(mode="background")
    pack = await seen(memory.conversation("t").context, budget=ContextBudget(characters=2000), policy=background)
    missing = sum(last - first + 1 for first, last, _ in pack.omitted)
    assert 0 < missing < 40
    assert numbers(metrics)["context_quality_score_sum/pack"] == pytest.approx(1 - missing / 40)


async def test_a_model_that_fails_makes_no_summary_and_no_number(
    caller: Caller, user_id: str, metrics: Metrics
) -> None:
    def fails(_: Any) -> str:
        raise RuntimeError(CANARY)

    memory = SupabaseMemory(
        caller.service._services.transport, user_id=user_id, model=fails, config=MemoryConfig(metrics=metrics)
    )
    seen = Caller(caller.kind, caller.color, memory, caller.as_token)
    await seen(memory.conversation("t").append, talk(20))
    await seen(memory.conversation("t").summaries.make, policy=SummaryPolicy(keep_messages=4))
    assert numbers(metrics)["summaries_generated_total"] == 0


async def test_the_store_counts_searches_by_meaning(seen: Caller, metrics: Metrics) -> None:
    store = SupabaseStore(seen.service)
    store.put(("facts",), "kiln", {"text": "The kiln is a Skutt"})
    if seen.color == "sync":
        store.search(("facts",), query="kiln")
    else:
        await store.asearch(("facts",), query="kiln")
    assert numbers(metrics)["vector_search_queries_total"] == 1
    assert numbers(metrics)["working_memory_searches_total"] == 0


def test_a_user_of_the_same_memory_is_counted_with_it(conn_string: str, metrics: Metrics) -> None:
    with SupabaseMemory.from_conn_string(conn_string, config=MemoryConfig(metrics=metrics)) as memory:
        assert memory.for_token({"sub": "u", "role": "authenticated"})._services.metrics is metrics
    assert SupabaseMemory(memory._services.transport)._services.metrics is NO_METRICS


def test_the_queue_is_gauged_when_it_is_asked_for(metrics: Metrics) -> None:
    answer = {"depth": 7, "lag_seconds": 1.5, "leases": 2, "dead": 1, "vector_bytes": 2_000_000}
    assert effects.run(call("memory_worker_queue", {}, "gauge queue"), Answers(lambda _: answer, metrics)) == answer
    read = numbers(metrics)
    assert (read["memory_queue_depth"], read["memory_leases"], read["memory_dead"]) == (7, 2, 1)
    assert read["vector_index_size_mb"] == 2


def test_a_mistake_of_the_observer_is_no_failure(metrics: Metrics, caplog: pytest.LogCaptureFixture) -> None:
    assert effects.run(call("memory_commit_chunks", {}, "write chunks"), Answers(lambda _: CANARY, metrics)) == CANARY
    assert "An observation failed (TypeError)" in caplog.text
    assert CANARY not in caplog.text


# --- Spans


def by_name(spans: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    return {span.name: span for span in spans.get_finished_spans()}


async def test_operations_and_their_steps_are_spans(seen: Caller, spans: InMemorySpanExporter) -> None:
    memory = seen.service
    conversation = memory.conversation("t")
    stored = await seen(conversation.append, talk(20))
    await seen(conversation.summaries.make, policy=SummaryPolicy(keep_messages=4))
    await seen(conversation.index)
    await seen(conversation.recall, "which kiln")
    await seen(conversation.context, "And now?", query="which kiln")
    found = by_name(spans)
    standard = [span for span in spans.get_finished_spans() if "gen_ai.operation.name" in (span.attributes or {})]
    found |= {str((span.attributes or {})["supabase_memory.operation"]): span for span in standard}
    operations = {"append", "summarize", "index_messages", "recall", "context"}
    found["index_messages"] = found["supabase_memory.index_messages"]
    steps = {"memory_append", "memory_pending", "memory_recall", "memory_context", "supabase_memory.embed"}
    assert operations | steps <= set(found)
    for name in operations:
        assert found[name].parent is None
    appended = found["append"].attributes or {}
    assert appended["supabase_memory.conversation_id"] == stored.conversation_id
    assert appended["supabase_memory.thread_id"] == "t"
    assert appended["supabase_memory.messages"] == 40
    asked = found["supabase_memory.ask"]
    assert asked.parent is not None
    assert asked.parent.span_id == found["summarize"].context.span_id
    assert all(span.status.is_ok or span.status.is_unset for span in found.values())
    assert not [span for span in found.values() if memory.user_id in (span.attributes or {}).values()]


async def test_an_error_is_told_by_class_and_code(caller: Caller, spans: InMemorySpanExporter) -> None:
    transport: Any = _Away(caller.service._services.transport, UnavailableError(CANARY, code="57P01"))
    memory = SupabaseMemory(transport, user_id="u")
    with pytest.raises(UnavailableError):
        await Caller(caller.kind, caller.color, memory, caller.as_token)(memory.conversation("t").count)
    (step, operation) = spans.get_finished_spans()
    assert (step.name, operation.name) == ("memory_count", "supabase_memory.count")
    for span in (step, operation):
        assert span.attributes is not None
        assert span.attributes["error.type"] == "UnavailableError"
        assert span.attributes["supabase_memory.code"] == "57P01"
        assert (span.status.status_code, span.status.description) == (trace.StatusCode.ERROR, "UnavailableError")
        assert not span.events
        assert CANARY not in span.to_json()


async def test_tasks_at_once_do_not_mix_their_spans(
    conn_string: str, user_id: str, spans: InMemorySpanExporter
) -> None:
    async with SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory:
        await asyncio.gather(*(memory.conversation(f"t{n}").acount() for n in range(8)))
    steps = [span for span in spans.get_finished_spans() if span.parent is not None]
    parents = {span.context.span_id: span for span in spans.get_finished_spans() if span.parent is None}
    assert len(parents) == 8
    for step in steps:
        assert step.parent is not None
        parent = parents[step.parent.span_id]
        assert (parent.attributes or {})["supabase_memory.thread_id"] == (step.attributes or {})[
            "supabase_memory.thread_id"
        ]


def test_a_span_of_the_caller_is_the_parent(conn_string: str, user_id: str, spans: InMemorySpanExporter) -> None:
    with (
        SupabaseMemory.from_conn_string(conn_string, user_id=user_id) as memory,
        TracerProvider().get_tracer("app").start_as_current_span("request") as request,
    ):
        memory.conversation("t").count()
    parent = by_name(spans)["supabase_memory.count"].parent
    assert parent is not None
    assert parent.span_id == request.get_span_context().span_id


def test_the_tracer_is_that_of_the_provider_that_was_set() -> None:
    program = (
        "from langchain_supabase_memory.memory import instrumentation\n"
        "print(instrumentation._tracer())\n"
        "from opentelemetry import trace; from opentelemetry.sdk.trace import TracerProvider\n"
        "trace.set_tracer_provider(TracerProvider())\n"
        "with instrumentation.span('x') as span: print(type(span).__name__, span.instrumentation_scope.name)"
    )
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["None", "_Span", "langchain_supabase_memory"]


def test_without_a_provider_nothing_is_recorded_and_nothing_observed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow_observer, "FlowObserver", None)  # it would be called
    assert effects.run(call("memory_schema", {}), Answers(lambda _: "done")) == "done"


# --- Logs


def test_a_record_is_one_line_of_json() -> None:
    record = logging.makeLogRecord(
        {
            "name": "langchain_supabase_memory.agents.run.fail_open",
            "levelno": logging.ERROR,
            "levelname": "ERROR",
            "msg": "line\nbreak \u2028 %s",
            "args": ("\ud800",),
            "created": 0.0,
            "level": "mine",
            **logs.conversation_fields(ConversationKey("t", "u"), UnavailableError(code="57P01")),
            "memory_object": object(),
        }
    )
    line = logs.JsonFormatter().format(record)
    assert len(line.splitlines()) == 1
    line.encode("ascii")
    shown = json.loads(line)
    assert list(shown)[:4] == ["time", "level", "logger", "message"]
    assert (shown["time"], shown["level"]) == ("1970-01-01T00:00:00.000+00:00", "error")
    assert shown["memory_thread_id"] == "t"
    assert (shown["memory_error"], shown["memory_code"]) == ("UnavailableError", "57P01")
    assert shown["memory_object"] == "<object>"


def test_of_an_exception_the_class_and_the_place_are_shown() -> None:
    try:
        raise RuntimeError(CANARY)
    except RuntimeError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    shown = json.loads(logs.JsonFormatter().format(record))
    assert shown["exception"] == "RuntimeError"
    assert "test_telemetry.py:" in shown["raised_at"]
    assert CANARY not in str(shown)


def test_the_command_line_logs_as_it_is_told() -> None:
    program = (
        "import logging; from langchain_supabase_memory.adapters.telemetry.logs import configure; configure({!r})\n"
        "logging.getLogger('langchain_supabase_memory.x').info('done', extra={{'memory_messages': 3}})\n"
        "logging.getLogger('elsewhere').info('hidden')"
    )
    for form in ("json", "plain"):
        ran = subprocess.run([sys.executable, "-c", program.format(form)], capture_output=True, text=True, check=True)
        (line,) = ran.stderr.splitlines()
        if form == "json":
            assert json.loads(line)["memory_messages"] == 3
        else:
            assert line.endswith("INFO    langchain_supabase_memory.x: done messages=3")


def test_a_line_for_people_says_what_matters_first_and_stays_one_line() -> None:
    key = ConversationKey('th"1\u2028INFO forged', "Maya Cruz", "a=b")
    record = logging.makeLogRecord(
        {
            "name": "langchain_supabase_memory.worker.worker",
            "levelno": logging.INFO,
            "levelname": "INFO",
            "msg": "A piece of work is done",
            "said": CANARY,
            **logs.conversation_fields(key, UnavailableError(code="57P01")),
            "memory_empty": "",
            "memory_object": object(),
            "memory_count": 3,
            "memory_attempts": 2,
            "memory_outcome": "retry",
            "memory_stage": None,
        }
    )
    line = logs.PlainFormatter().format(record)
    assert line.partition("done ")[2] == (
        'outcome=retry error=UnavailableError code=57P01 attempts=2 thread_id="th\\"1\\u2028INFO forged"'
        ' user_id="Maya Cruz" agent_id="a=b" empty="" object="<object>" count=3'
    )
    assert CANARY not in line
    assert len(line.splitlines()) == 1


def test_of_an_exception_people_see_the_class_and_the_place_too() -> None:
    try:
        raise RuntimeError(CANARY)
    except RuntimeError:
        record = logging.makeLogRecord({"msg": "failed", "exc_info": sys.exc_info()})
    line = logs.PlainFormatter().format(record)
    assert "failed exception=RuntimeError raised_at=" in line
    assert CANARY not in line


ALERTS: list[tuple[Alert, dict[str, Any], str]] = [
    (
        "quality",
        of_quality(ConversationKey("t", "u"), 0.2071),
        "quality 0.207 of thread 't' (user 'u', agent 'default')",
    ),
    (
        "dead",
        {**logs.conversation_fields(ConversationKey("t", "u")), "memory_attempts": 8, "memory_error": "ValueError"},
        "dead after 8 attempts (ValueError): thread 't' (user 'u', agent 'default')",
    ),
    ("lag", {"memory_lag_seconds": 3600, "memory_depth": 12}, "lag of 3600 s, 12 due"),
]


@pytest.mark.parametrize(("kind", "facts", "said"), ALERTS, ids=[kind for kind, *_ in ALERTS])
def test_an_alert_names_its_kind_and_its_number_by_itself(
    metrics: Metrics, caplog: pytest.LogCaptureFixture, kind: Alert, facts: dict[str, Any], said: str
) -> None:
    alert(metrics, kind, facts)
    (record,) = caplog.records
    assert record.getMessage() == f"Memory needs a look: {said}"
    assert {"memory_alert": kind, **facts}.items() <= vars(record).items()
    assert f"{said} alert={kind} " in logs.PlainFormatter().format(record)
    assert numbers(metrics)[f"memory_alerts_total/{kind}"] == 1


def test_the_words_of_alerts_and_of_pieces_are_those_that_there_are() -> None:
    assert {kind for kind, *_ in ALERTS} == set(get_args(Alert))
    counted = {*get_args(Alert), "rollout"}
    for method, words in ((NoMetrics.piece, get_args(Outcome)), (NoMetrics.alert, counted)):
        assert set(re.findall(r"`(\w+)`", method.__doc__ or "")) == set(words)


def test_the_option_is_one_of_all_commands(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr("langchain_supabase_memory.cli.application.configure", told.append)
    assert CliRunner().invoke(commands, ["--log-format", "json", "sql"]).exit_code == 0
    assert CliRunner().invoke(commands, ["sql"]).exit_code == 0
    assert CliRunner().invoke(commands, ["--log-format", "xml", "sql"]).exit_code == 2
    assert told == ["json"]


# --- No word of what was said


class _Away:
    """A transport that fails."""

    acts_as_user = False
    identity_is_callback = False

    def __init__(self, inner: Any, error: Exception) -> None:
        self.inner, self.error = inner, error

    def perform(self, call: Call) -> Any:
        raise self.error

    async def aperform(self, call: Call) -> Any:
        raise self.error

    def close(self) -> None:
        self.inner.close()


def _bug(_: Any = None) -> Any:
    raise RuntimeError(f"a provider's error with the prompt in it: {CANARY}")


def _failing(memory: SupabaseMemory, conn_string: str) -> Iterator[tuple[str, Callable[[], Any]]]:
    """Every path that fails and that can be reached, each over a conversation full of canaries."""
    said = [HumanMessage(f"{CANARY} {n} " * 20) for n in range(30)]
    broken = SupabaseMemory(
        memory._services.transport,
        user_id=memory.user_id,
        model=_bug,
        embeddings=EmbeddingModel(ScriptedEmbedder(_bug, "words"), attempts=1),
        config=MemoryConfig(metrics=memory._services.metrics),  # type: ignore[arg-type]
    )

    def away(error: Exception) -> SupabaseMemory:
        twin = SupabaseMemory(
            memory._services.transport,
            user_id=memory.user_id,
            config=MemoryConfig(metrics=memory._services.metrics),  # type: ignore[arg-type]
        )
        twin._services.transport = _Away(memory._services.transport, error)  # type: ignore[assignment]
        return twin

    conversation = memory.conversation("t")
    yield "append", lambda: conversation.append(said)
    yield "summary model", lambda: broken.conversation("t").summaries.make(policy=SummaryPolicy(keep_messages=2))
    yield "embedder", lambda: broken.conversation("t").index()
    yield "embedder of the question", lambda: broken.recall(CANARY)
    yield "embedder of a pack", lambda: broken.conversation("t").context(CANARY, query=CANARY)
    yield "embedder of summaries", lambda: broken.recall_summaries(CANARY)
    yield "store", lambda: SupabaseStore(broken).put((CANARY,), CANARY, {"text": CANARY})
    yield "store search", lambda: SupabaseStore(broken).search((CANARY,), query=CANARY)
    yield (
        "token counter",
        lambda: conversation.context(budget=ContextBudget(tokens=500, token_counter=_bug)),
    )
    yield "no message", lambda: conversation.append([{"nothing": CANARY}])
    yield "refused", lambda: memory.recall(CANARY, time_range=CANARY)  # type: ignore[arg-type]
    yield "no key", lambda: SupabaseMemory.from_url(CANARY, CANARY)
    yield (
        "database away",
        lambda: (
            SupabaseMemory.from_conn_string(f"postgresql://u:{CANARY}@127.0.0.1:1/x", user_id="u")
            .conversation("t")
            .count()
        ),
    )
    for name, error in (("away", UnavailableError()), ("a bug", RuntimeError(CANARY))):
        guard = FailOpen(away(error), None, "log", 5)
        flow = flush_and_append(away(error)._services, ConversationKey("t", "u"), said)
        yield (
            f"guard, {name}",
            partial(effects.run, guard.attempt(flow, GuardedTask("not stored", said), ConversationKey("t", "u"))),
        )
        tools = [
            get_turn_tool(away(error), thread_id="t"),
            search_conversation_history_tool(away(error), thread_id="t"),
        ]
        for tool in tools:
            argument = {"query": CANARY} if "query" in tool.args else dict.fromkeys(tool.args, 1)
            yield f"the tool {tool.name}, {name}", partial(tool.invoke, argument)
    history = SupabaseChatMessageHistory("t", away(UnavailableError()))
    yield "history", lambda: history.add_messages(said)
    yield "clean-up", lambda: asyncio.run(asyncio.wait_for(cleanup(away(UnavailableError()), timedelta(1)), 0.2))

    def unreadable() -> Any:
        with psycopg.connect(conn_string) as sql:
            sql.execute(
                "update memory.conversation_messages set payload = json_build_object('type', 'strange', 'data',"
                " json_build_object('content', %s::text)) where user_id = %s and sequence = 1",
                [CANARY, memory.user_id],
            )
        return conversation.read()

    yield "a stored message that can not be restored", unreadable

    def mistaken() -> Flow[Any]:
        yield from call("memory_count", {"p_thread_id": "t", "p_user_id": memory.user_id})
        yield from embed([CANARY])
        raise KeyError(CANARY)

    yield "a flow with a mistake", lambda: memory._services.run(mistaken())


def test_no_failure_tells_what_was_said(
    conn_string: str, user_id: str, spans: InMemorySpanExporter, metrics: Metrics, caplog: pytest.LogCaptureFixture
) -> None:
    memory = SupabaseMemory.from_conn_string(
        conn_string, user_id=user_id, embeddings=WordEmbedder(), config=MemoryConfig(metrics=metrics)
    )
    logged: list[str] = []
    told: list[str] = []
    with memory, caplog.at_level(logging.DEBUG, logs.PACKAGE):
        for name, fail in _failing(memory, conn_string):
            caplog.clear()
            try:
                answer = fail()
                told += [f"{name}: {answer}"] if "tool" in name else []
            except (SupabaseMemoryError, ToolException) as error:
                told.append(f"{name}: {error} {error!r}")
            except (TimeoutError, KeyError, RuntimeError):
                pass  # the clean-up's end, and mistakes that are the caller's to see
            ours = [record for record in caplog.records if record.name.startswith(logs.PACKAGE)]
            lines = [f"{logs.JsonFormatter().format(each)} {vars(each)}" for each in ours]
            logged += lines
            assert not [line for line in lines if CANARY in line], name
            assert not [each for each in spans.get_finished_spans() if CANARY in each.to_json()], name
            assert CANARY not in metrics.render()[0].decode(), name
    assert not [line for line in told if CANARY in line]
    assert len(told) >= 8
    assert len(logged) >= 8
    assert len(spans.get_finished_spans()) > 20
    assert all("memory_" in line for line in logged), logged


# --- The server


def get(server: MetricsServer, path: str, method: str = "GET") -> tuple[int, str, bytes]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
    try:
        connection.request(method, path)
        answer = connection.getresponse()
        return answer.status, str(answer.getheader("Content-Type")), answer.read()
    finally:
        connection.close()


def test_the_server_serves_numbers_and_health(metrics: Metrics) -> None:
    metrics.retried()
    with MetricsServer(metrics, lambda: (True, {"depth": 3}), port=0) as server:
        assert server.port > 0
        status, content_type, body = get(server, "/metrics")
        families = {family.name: family for family in text_string_to_metric_families(body.decode())}
        assert (status, content_type.split(";")[0]) == (200, "text/plain")
        assert families["memory_retries"].samples[0].value == 1
        assert get(server, "/healthz?verbose")[::2] == (200, b'{"status": "ok", "depth": 3}')
        assert get(server, "/metrics", "HEAD")[::2] == (200, b"")
        assert get(server, "/else")[0] == 404
        assert get(server, "/metrics", "DELETE")[0] == 501
        assert server.start() is server
        port = server.port
    with pytest.raises(ConnectionRefusedError):
        http.client.HTTPConnection("127.0.0.1", port, timeout=2).connect()
    server.close()


NOON = datetime(2026, 11, 22, 12, tzinfo=UTC)
CAUSE = Cause("embedder", "EmbeddingError", "The embedder failed (RuntimeError).", "429", 3, NOON, NOON)
CAUSES = {"embedder": {"error": "EmbeddingError", "code": "429", "since": "2026-11-22T12:00:00+00:00"}}


def _breaks() -> Any:
    raise RuntimeError(CANARY)


@pytest.mark.parametrize(
    ("health", "status", "body"),
    [
        (None, 200, {"status": "ok"}),
        (lambda: (False, {"dead": 2}), 503, {"status": "unavailable", "dead": 2}),
        (
            lambda: Health("open", 5, 1.0, None, 7),
            503,
            {"status": "unavailable", "circuit": "open", "failures": 5, "waiting": 7, "causes": {}},
        ),
        (
            lambda: Health("closed", 0, 0.0, None, 0, (CAUSE,)),
            200,
            {"status": "ok", "circuit": "closed", "failures": 0, "waiting": 0, "causes": CAUSES},
        ),
        (_breaks, 503, {"status": "unavailable", "error": "RuntimeError"}),
        (lambda: (True, {"odd": object()}), 503, {"status": "unavailable", "error": "TypeError"}),
    ],
    ids=["none", "unwell", "open", "closed", "raises", "odd"],
)
def test_health_is_said_by_status(metrics: Metrics, health: Any, status: int, body: dict[str, Any]) -> None:
    with MetricsServer(metrics, health, port=0) as server:
        answer = get(server, "/healthz")
    assert (answer[0], json.loads(answer[2])) == (status, body)


def test_a_collector_that_fails_is_said(metrics: Metrics) -> None:
    metrics.render = _breaks  # type: ignore[method-assign]
    with MetricsServer(metrics, port=0) as server:
        assert get(server, "/metrics")[::2] == (500, b'{"error": "RuntimeError"}')


def test_a_port_in_use_is_a_clear_error(metrics: Metrics) -> None:
    with (
        MetricsServer(metrics, port=0) as server,
        pytest.raises(ConfigurationError, match="Pass another port"),
        MetricsServer(metrics, port=server.port),
    ):
        pass
    for host, port in (("127.0.0.1", 70_000), ("203.0.113.1", 9464)):
        with pytest.raises(ConfigurationError, match=f"{host}:{port}"):
            MetricsServer(metrics, host=host, port=port).start()


async def test_the_server_holds_no_event_loop_up(metrics: Metrics) -> None:
    asked = asyncio.Event()
    loop = asyncio.get_running_loop()

    def slow() -> tuple[bool, dict[str, Any]]:
        loop.call_soon_threadsafe(asked.set)  # the loop runs while the server works
        return True, {}

    with MetricsServer(metrics, slow, port=0) as server:
        answer = asyncio.create_task(asyncio.to_thread(get, server, "/healthz"))
        await asyncio.wait_for(asked.wait(), 5)
        assert (await answer)[0] == 200


async def test_a_memory_tells_its_health(conn_string: str, metrics: Metrics) -> None:
    with (
        SupabaseMemory.from_conn_string(conn_string, config=MemoryConfig(metrics=metrics)) as memory,
        MetricsServer(memory._services.metrics, memory.health, port=0) as server,
    ):
        assert (await asyncio.to_thread(get, server, "/healthz"))[0] == 200


def test_names_of_spans_are_those_of_verbs() -> None:
    assert instrumentation._name(outbox_delivery.flush) == "flush"
    assert instrumentation._name(messages.append) == "append"
    assert instrumentation.PREFIX == "supabase_memory."
