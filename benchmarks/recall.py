"""Measure recall in a conversation, for a user, and for an owner of half a large table, next to bare SQL.

The table has 200,000 chunks, or 50,000 where the longer vectors get an index. Both floors read the memory's vectors.
The ten nearest chunks are known by brute force, in numpy.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import dataclass, replace
from functools import partial
from itertools import cycle
from pathlib import Path
from statistics import fmean, median
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import psycopg
from langchain_core.embeddings import Embeddings
from psycopg_pool import ConnectionPool

from benchmarks import commit, corpus, fill
from benchmarks.corpus import Asked, Corpus
from benchmarks.harness import Table, exponent, p95, timed, verdict
from langchain_supabase_memory import SupabaseMemory
from langchain_supabase_memory.adapters.embedder import EmbeddingModel
from langchain_supabase_memory.adapters.schema import script
from langchain_supabase_memory.operations.recall.query import Filters, RecallQuery
from langchain_supabase_memory.settings import RecallWeights
from tests.services.data_api import token

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from benchmarks.services import Lab, Site
    from langchain_supabase_memory.values import Recall

    Contestant = Callable[[Asked], object]
    Statement = Callable[[psycopg.Connection[Any], Asked], list[Any]]

GROWTH_BOUND: Final = 0.05
RECALL_BOUND: Final = 0.9
MEMORY_BOUND: Final = 1.1
LONG_BOUND: Final = 2
LIMIT: Final = 10

_WIDTHS: Final = (384, 1536)
_LONG: Final = 600
"""The number of messages in a long conversation."""

_QUESTIONS: Final = 100
_COMPARED: Final = 20

_NEAREST_10: Final = "floor: bare SQL, nearest 10"
_HYBRID: Final = "Supabase's hybrid search"
_SQL: Final = "memory_recall, JSON ready"
_OURS: Final = "memory.recall"
_OURS_FEW: Final = "memory.recall, candidates only"
_OURS_API: Final = "memory.recall, Data API"

_MEANING: Final = RecallWeights(
    words=0, meaning=1, around=0, speaker=0, date=0, kind=0, question=0, importance=0, recency=0, beside=0, reply=0
)
_INDEXED: Final = 50_000
"""The number of longer vectors that are indexed."""

_FORGET: Final = (
    "truncate memory.chunk_postings, memory.working_memory_chunks, memory.chunk_embeddings",
    f"delete from memory.conversations where starts_with(thread_id, 'recall-') or user_id = '{commit.WRITER}'",
)
_DOCUMENTS: Final = """
drop table if exists bench.documents;
create table bench.documents (
  user_id text, conversation_id uuid, place bigint, part integer, content text,
  fts tsvector generated always as (to_tsvector('english', content)) stored,
  primary key (user_id, conversation_id, place, part));
create index on bench.documents using gin (fts);
insert into bench.documents select user_id, conversation_id, place, part, content from memory.working_memory_chunks
"""
_SELECT_NEAREST: Final = """
select k.id, k.content, k.said_at, -n.distance
from (select e.user_id, e.conversation_id, e.place, e.part,
             e.embedding{cast} operator(extensions.<#>) %(vector)s::extensions.halfvec{typmod} as distance
      from memory.chunk_embeddings e
      where {scope} and e.model = 'bench' and e.dimensions = {width}
      order by e.embedding{cast} operator(extensions.<#>) %(vector)s::extensions.halfvec{typmod} limit 10) n
join memory.working_memory_chunks k using (user_id, conversation_id, place, part)
order by n.distance
"""
# The recipe of https://supabase.com/docs/guides/ai/hybrid-search, with the owner in both halves.
_SELECT_HYBRID: Final = """
with full_text as (
  select e.user_id, e.conversation_id, e.place, e.part,
         row_number() over (order by ts_rank_cd(e.fts, websearch_to_tsquery('english', %(text)s)) desc) as rank_ix
  from bench.documents e
  where e.fts @@ websearch_to_tsquery('english', %(text)s) and {scope}
  order by rank_ix limit 20),
semantic as (
  select e.user_id, e.conversation_id, e.place, e.part,
         row_number() over (order by e.embedding{cast}
                                     operator(extensions.<#>) %(vector)s::extensions.halfvec{typmod}) as rank_ix
  from memory.chunk_embeddings e
  where {scope} and e.model = 'bench' and e.dimensions = {width}
  order by rank_ix limit 20)
select d.*
from full_text f full outer join semantic s using (user_id, conversation_id, place, part)
join bench.documents d using (user_id, conversation_id, place, part)
order by coalesce(1.0 / (50 + f.rank_ix), 0.0) + coalesce(1.0 / (50 + s.rank_ix), 0.0) desc
limit 10
"""
_SELECT_OURS: Final = b"select public.memory_recall(p_ask => %s, p_thread_id => %s, p_user_id => %s)"
_SIZES: Final = b"""
select t.relname, null, pg_table_size(t.oid) from pg_class t
where t.relnamespace = 'memory'::regnamespace and t.relname = any (%(tables)s)
union all
select t.relname, i.relname, pg_relation_size(i.oid)
from pg_class t join pg_index x on x.indrelid = t.oid join pg_class i on i.oid = x.indexrelid
where t.relnamespace = 'memory'::regnamespace and t.relname = any (%(tables)s)
"""
_CLIENT: Final = """
import sys
from langchain_core.embeddings import Embeddings
from langchain_supabase_memory import SupabaseMemory

class Known(Embeddings):
    model = "bench"
    def embed_query(self, text):
        return vector
    def embed_documents(self, texts):
        return [vector for _ in texts]

def peak():
    with open("/proc/self/status") as status:
        return next(line.split()[1] for line in status if line.startswith("VmHWM"))

url, user, thread, text = sys.argv[1:]
vector = [float(number) for number in sys.stdin.read().split()]
with SupabaseMemory.from_conn_string(url, user_id=user, embeddings=Known()) as memory:
    memory.conversation("nothing").count()
    asked = memory.conversation(thread) if thread else memory
    before = peak()
    for _ in range(5):
        assert asked.recall(text, limit=10).chunks
    print(before, peak())
"""


@dataclass(frozen=True)
class Scope:
    """Where to search.

    Attributes:
        name: Its name in the tables.
        user: The number of its owner.
        rows: Its chunks.
        thread_id: Its only conversation, if it is one.
        conversation: The id of that conversation.
        indexed: Whether the vectors have an index, and the scope is large enough to use it.
        exact_below: The maximum number of chunks for exact ranking; below the default if the table is small.
    """

    name: str
    user: int
    rows: range
    thread_id: str | None = None
    conversation: UUID | None = None
    indexed: bool = False
    exact_below: int = 10_000

    def asked(self, memory: SupabaseMemory) -> Callable[..., Recall]:
        """Return the verb that recalls from this scope."""
        owner = corpus.user_id(self.user)
        if self.thread_id is None:
            return partial(memory.for_user(owner).recall)
        return memory.for_user(owner).conversation(self.thread_id).recall

    def filled(self, statement: str, width: int) -> bytes:
        """Return a floor's statement for this scope."""
        one = " and e.conversation_id = %(conversation)s" if self.conversation else ""
        typmod = f"({width})" if self.indexed else ""
        cast = f"::extensions.halfvec({width})" if self.indexed else ""
        return statement.format(scope=f"e.user_id = %(user)s{one}", width=width, cast=cast, typmod=typmod).encode()

    def values(self, asked: Asked) -> dict[str, Any]:
        """Return the values of a floor's statement."""
        return {
            "user": corpus.user_id(self.user),
            "conversation": self.conversation,
            "text": asked.text,
            "vector": json.dumps(asked.vector),
        }


class _Known(Embeddings):
    """An embedder with precomputed vectors."""

    def __init__(self) -> None:
        self.vectors: dict[str, list[float]] = {}

    def embed_query(self, text: str) -> list[float]:
        return self.vectors[text]

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self.vectors[text] for text in texts]


async def run(lab: Lab) -> list[Table]:
    site = lab.site("off")
    long = await _long(lab, site)
    made = Corpus(site, 20_000 if lab.quick else 200_000)
    tables = [long, await _growth(lab, made)]
    _execute(site, _DOCUMENTS)
    fill.vacuum(site)
    bench = _Bench(lab, made, _WIDTHS[0])
    tables += [await bench.recalls(scope) for scope in (bench.one, bench.many, bench.most)]
    tables += await bench.index()
    if lab.quick:
        return tables
    _execute(site, f"drop index memory.chunk_embeddings_hnsw_{_WIDTHS[0]}", "truncate memory.chunk_embeddings")
    made.embed(_WIDTHS[1], 0, made.size)
    fill.vacuum(site)
    bench = _Bench(lab, made, _WIDTHS[1])
    tables += [await bench.recalls(scope) for scope in (bench.one, bench.many, bench.most)]
    # An index on all of them would exceed the time limit.
    _execute(site, *_FORGET)
    made = Corpus(site, _INDEXED)
    made.fill(_INDEXED)
    made.embed(_WIDTHS[1], 0, _INDEXED)
    _execute(site, _DOCUMENTS)
    fill.vacuum(site)
    bench = _Bench(lab, made, _WIDTHS[1])
    return [*tables, await bench.recalls(bench.most), *await bench.index()]


async def _long(lab: Lab, site: Site) -> Table:
    """Measure recall in one long conversation, next to its bare nearest ten."""
    made = Corpus(site, 20 * _LONG, _LONG)
    made.fill(made.size)
    made.embed(_WIDTHS[0], 0, made.size)
    _execute(site, _DOCUMENTS)
    fill.vacuum(site)
    bench = _Bench(lab, made, _WIDTHS[0])
    table = await bench.recalls(bench.one)
    ratio = {str(row[0]): float(row[3]) for row in table.rows}[_OURS]
    table.notes.append(verdict(f"memory.recall in {_LONG} messages, x bare SQL, nearest 10", ratio, LONG_BOUND))
    _execute(site, *_FORGET)
    return table


async def _growth(lab: Lab, made: Corpus) -> Table:
    """Measure the same recall while the table grows around its conversation."""
    sizes = [size for size in (1000, 10_000, 100_000) if size < made.size] + [made.size]
    ours: list[float] = []
    ratios: list[float] = []
    bench = _Bench(lab, made, _WIDTHS[0])
    for size in sizes:
        before = made.filled
        made.fill(size)
        made.embed(_WIDTHS[0], before, size)
        fill.vacuum(made.site)
        contestants = bench.contestants(bench.one)
        times = await timed(
            {name: contestants[name] for name in (_NEAREST_10, _OURS)},
            bench.supply(bench.one),
            rounds=400,
            seconds=2 if lab.quick else 8,
        )
        ours.append(median(times[_OURS]))
        ratios.append(ours[-1] / median(times[_NEAREST_10]))
    slopes = [exponent(sizes, ours), exponent(sizes, ratios)]
    return Table(
        f"Recall in a conversation of {corpus.LENGTH} chunks while the table grows, direct, {_WIDTHS[0]} dimensions",
        ["", *[f"{size:,} chunks" for size in sizes], "exponent"],
        [
            ["memory.recall, ms", *ours, f"{slopes[0]:.3f}"],
            ["x bare SQL, nearest 10", *ratios, f"{slopes[1]:.3f}"],
        ],
        [
            verdict("exponent of the time", slopes[0], GROWTH_BOUND),
            verdict("exponent of the ratio", slopes[1], GROWTH_BOUND),
        ],
    )


class _Bench:
    """The measurements with vectors of one width."""

    def __init__(self, lab: Lab, made: Corpus, width: int) -> None:
        self.quick = lab.quick
        self.made = made
        self.site = made.site
        self.width = width
        self.title = f"{width} dimensions, a table of {made.size:,}"
        many, most = made.rows(corpus.MANY), made.rows(corpus.MOST)
        first = range(made.length)
        self.one = Scope(
            f"in a conversation of {len(first)}", corpus.MANY, first, corpus.thread(0), made.conversation(0)
        )
        self.many = Scope(f"of a user with {len(many):,}", corpus.MANY, many, exact_below=len(many))
        self.most = Scope(f"of a user with {len(most):,}", corpus.MOST, most, exact_below=len(many))
        self.known = _Known()
        url, open_now = self.site.conn_string, {**self.site.pool_settings(), "open": True}
        # Each caches recent questions, so each contestant has its own and saves no work for another.
        self.direct, self.few = (SupabaseMemory.from_conn_string(url, embeddings=self._embedder()) for _ in range(2))
        self.data_api = SupabaseMemory.from_url(
            self.site.url, token("service_role"), rest_path="", embeddings=self._embedder()
        )
        self.pool: ConnectionPool[Any] = ConnectionPool(url, configure=_configured, **open_now)
        for each in (self.direct, self.few, self.data_api, self.pool):
            self.site.stack.callback(each.close)

    def _embedder(self) -> EmbeddingModel:
        return EmbeddingModel(self.known, name=corpus.MODEL)

    async def index(self) -> list[Table]:
        """Measure with an index on the vectors, and the storage that it takes."""
        fill.vacuum(self.site)
        seconds = 2 if self.quick else 10
        bare = await commit.measured(self.made, self.pool, self.width, seconds=seconds)
        begun = time.perf_counter()
        _execute(self.site, "set maintenance_work_mem = '3GB'", *_vector_index(self.width))
        build = time.perf_counter() - begun
        fill.vacuum(self.site)
        indexed = replace(self.most, name=f"through HNSW {self.most.name}", indexed=True)
        recalls = await self.recalls(indexed)
        loaded = await commit.measured(self.made, self.pool, self.width, seconds=seconds)
        return [recalls, self._inserts(bare, loaded, build), self._stored(), self._peaks([self.one, indexed])]

    def contestants(self, scope: Scope) -> dict[str, Contestant]:
        direct, few, data_api = (scope.asked(each) for each in (self.direct, self.few, self.data_api))
        exact: dict[str, Any] = {"limit": LIMIT, "exact_below": scope.exact_below}
        found: dict[str, Contestant] = {
            name: partial(self._pooled, statement) for name, statement in self._statements(scope).items()
        }
        found[_OURS] = lambda question: direct(question.text, **exact)
        if scope is self.many:
            found[_OURS_FEW] = lambda question: few(question.text, limit=LIMIT, exact_below=1)
        found[_OURS_API] = lambda question: data_api(question.text, **exact)
        return found

    def supply(self, scope: Scope) -> Callable[[], Asked]:
        """Return an endless supply of a scope's questions; each contestant of a round gets the next one."""
        questions = self._questions(scope)
        return cycle(questions).__next__

    def _questions(self, scope: Scope) -> list[Asked]:
        questions = self.made.questions(scope.rows, _QUESTIONS)
        self.known.vectors |= {asked.text: asked.vector for asked in questions}
        return questions

    def _statements(self, scope: Scope) -> dict[str, Statement]:
        """Return what needs no client: the floors, and the SQL function with a prepared argument."""
        documents = {}
        for asked in self._questions(scope):
            question = RecallQuery(asked.text, Filters(limit=LIMIT, exact_below=scope.exact_below))
            document = question.document(question.find_hints(), [((), asked.vector)], corpus.MODEL)
            documents[asked.text] = json.dumps(document, separators=(",", ":"))
        owner = corpus.user_id(scope.user)
        nearest, hybrid = (scope.filled(each, self.width) for each in (_SELECT_NEAREST, _SELECT_HYBRID))
        return {
            _NEAREST_10: lambda connection, asked: connection.execute(nearest, scope.values(asked)).fetchall(),
            _HYBRID: lambda connection, asked: connection.execute(hybrid, scope.values(asked)).fetchall(),
            _SQL: lambda connection, asked: connection.execute(
                _SELECT_OURS, [documents[asked.text], scope.thread_id, owner]
            ).fetchall(),
        }

    def _pooled(self, statement: Statement, asked: Asked) -> list[Any]:
        with self.pool.connection() as connection:
            return statement(connection, asked)

    def _server(self, scope: Scope) -> dict[str, float]:
        """Return the median of the server's own time in milliseconds, which other load hardly affects."""
        times: dict[str, list[float]] = {}
        with self.pool.connection() as connection:
            clock = Path(f"/proc/{connection.info.backend_pid}/schedstat")
            if not clock.exists():
                return {}
            connection.execute("set max_parallel_workers_per_gather = 0")  # use one process only
            statements = self._statements(scope)
            for asked in self._questions(scope)[:_COMPARED]:
                for name, statement in statements.items():
                    begun = int(clock.read_text().split()[0])
                    statement(connection, asked)
                    times.setdefault(name, []).append((int(clock.read_text().split()[0]) - begun) / 1e6)
            connection.execute("reset max_parallel_workers_per_gather")
        return {name: median(values) for name, values in times.items()}

    async def recalls(self, scope: Scope) -> Table:
        contestants = self.contestants(scope)
        seconds = 3 if self.quick else 15 if scope is self.one else 20
        times = await timed(contestants, self.supply(scope), rounds=300, seconds=seconds, warm_up=2)
        found, server = self._found(scope), self._server(scope)
        rows: list[list[str | float]] = []
        notes = [f"{len(times[_OURS])} rounds"]
        for name, values in times.items():
            recall, approximate = found.get(name, ("", ""))
            middle = median(values)
            cells: list[str | float] = [name, middle, p95(values), middle / median(times[_NEAREST_10])]
            cells += [server[name], server[name] / server[_NEAREST_10]] if name in server else ["", ""]
            rows.append([*cells, recall, approximate])
            if isinstance(recall, float) and name != _NEAREST_10:
                notes.append(verdict(f"recall@10 of {name} by vectors only", recall, RECALL_BOUND, at_least=True))
        columns = ["", "p50, ms", "p95, ms", "x bare SQL", "server CPU, ms", "x", "recall@10", "approximate"]
        return Table(f"Recall {scope.name} chunks, direct, {self.title}", columns, rows, notes)

    def _found(self, scope: Scope) -> dict[str, tuple[float, str]]:
        """Return how many of the ten nearest each finds by vectors only, and whether it reports an approximation."""
        questions = self._questions(scope)[:_COMPARED]
        nearest = self.made.nearest(scope.rows, questions, LIMIT)

        def share(found: Sequence[set[Any]]) -> float:
            return fmean(len(ours & best) / LIMIT for ours, best in zip(found, nearest, strict=True))

        nearest_10 = partial(self._pooled, self._statements(scope)[_NEAREST_10])
        result = {_NEAREST_10: (share([{row[0] for row in nearest_10(each)} for each in questions]), "")}
        for name, exact_below in ((_OURS, scope.exact_below), *([(_OURS_FEW, 1)] if scope is self.many else [])):
            answers = [
                scope.asked(self.direct)(each.text, limit=LIMIT, weights=_MEANING, exact_below=exact_below)
                for each in questions
            ]
            said = "yes" if all(each.approximate for each in answers) else "no"
            result[name] = share([{UUID(chunk.id) for chunk in each.chunks} for each in answers]), said
        return result

    def _inserts(self, bare: Mapping[str, list[float]], loaded: Mapping[str, list[float]], build: float) -> Table:
        rows: list[list[str | float]] = []
        for name in bare:
            cells: list[str | float] = [name]
            for times in (bare, loaded):
                middle = median(times[name])
                cells += [middle, p95(times[name]), middle / median(times[commit.SAME_ROWS])]
                cells.append(middle / median(times[commit.VECTORS]))
            rows.append([*cells, median(loaded[name]) / median(bare[name])])
        columns = ["", "p50, ms", "p95, ms", "x same rows", "x vectors"]
        return Table(
            f"Storing a batch of {commit.BATCH} chunks, direct, {self.title}",
            [*columns, *(f"HNSW: {each}" for each in columns[1:]), "HNSW x none"],
            rows,
            [f"HNSW was built in {build:.0f} s"],
        )

    def _stored(self) -> Table:
        """Measure the size of the tables and their indexes."""
        tables = ["working_memory_chunks", "chunk_postings", "chunk_embeddings"]
        with self.pool.connection() as connection:
            found = connection.execute(_SIZES, {"tables": tables}).fetchall()
            row = connection.execute("select count(*) from memory.chunk_embeddings").fetchone()
        assert row is not None
        number = row[0]
        rows: list[list[str | float]] = []
        for table, index, size in sorted(found, key=lambda each: (tables.index(each[0]), each[1] or "")):
            rows.append([f"  {index}" if index else table, size / 1e6, size / 1e3 / (number / 1000)])
        total = sum(size for _, _, size in found)
        rows.append(["all", total / 1e6, total / 1e3 / (number / 1000)])
        raw = number * 2 * self.width
        notes = [f"in total {total / raw:.1f} times the raw numbers of the vectors, which take {raw / 1e6:,.0f} MB"]
        return Table(f"Storage, {self.title}", ["", "MB", "kB per 1,000 chunks"], rows, notes)

    def _peaks(self, scopes: Sequence[Scope]) -> Table:
        """Measure the peak resident memory of new client processes."""
        peaks: list[list[float]] = []
        for scope in scopes:
            asked = self._questions(scope)[0]
            arguments = [self.site.conn_string, corpus.user_id(scope.user), scope.thread_id or "", asked.text]
            result = subprocess.run(
                [sys.executable, "-c", _CLIENT, *arguments],
                input=" ".join(map(str, asked.vector)), capture_output=True, text=True, check=True,
            )  # fmt: skip
            peaks.append([float(each) / 1000 for each in result.stdout.split()])
        rows: list[list[str | float]] = [
            ["before the first recall", *(before for before, _ in peaks), peaks[-1][0] / peaks[0][0]],
            ["peak of five recalls", *(after for _, after in peaks), peaks[-1][1] / peaks[0][1]],
        ]
        return Table(
            f"Peak resident memory of a client, direct, {self.title}",
            ["MB", *(f"{scope.name} chunks" for scope in scopes), "ratio"],
            rows,
            [verdict("peak, large to small scope", peaks[-1][1] / peaks[0][1], MEMORY_BOUND)],
        )


def _configured(connection: psycopg.Connection[Any]) -> None:
    connection.execute("select '[1]'::extensions.vector")  # loads the extension, which defines the settings
    connection.execute("set hnsw.iterative_scan = relaxed_order")
    connection.execute("set hnsw.ef_search = 100")


def _vector_index(width: int) -> list[str]:
    """Return the statement of `migrate(…, vector_index=width)`."""
    return [part.sql for part in script.parts(vector_index=width) if part.name.startswith("vector_index")]


def _execute(site: Site, *statements: str) -> None:
    with psycopg.connect(site.conn_string, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())
