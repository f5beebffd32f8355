"""Store the tables of the latest runs in `results.json`, and write `RESULTS.md` from them.

    python -m benchmarks.results

`make bench-retrieval ... ARGS=--keep` adds its own.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from textwrap import fill
from typing import Final

from benchmarks.harness import Table
from benchmarks.titles import (
    APPEND_TITLE,
    CAREFUL,
    CONVERSATION_TITLE,
    DATA_API,
    DIRECT,
    FLOOR_LC,
    HISTORY,
    LOAD_TITLE,
    LOCK,
    MANIFEST_TITLE,
    PROCESSOR_TITLE,
    SAVER,
    SQL,
    TURNS_TITLE,
)

_HERE: Final = Path(__file__).parent
_STORED: Final = _HERE / "results.json"
_PAGE: Final = _HERE / "RESULTS.md"
_CONTEXT: Final = ("range read + LangChain messages", "memory_context, as JSON values", "memory.context")
_ABOUT: Final = {
    "beside": """
The floor keeps two columns of text, keyed by the conversation and the running sum of its characters, and knows where
the conversation ends; a turn's read and insert are one pipelined round trip. `lock the counter and insert` is one call
that numbers messages without gaps and stores them: once the text and payload with two indexes, once everything that
this package stores, with the same checks and indexes. Each contestant has its own process, and all take turns.
""",
    "context": """
The floor here reads the same rows from a table as wide as the memory's, and creates LangChain messages from their
payloads; it knows the beginning of the range in advance.
""",
    "recall": """
Vectors are clustered like those of real text, and words follow Zipf's law. In a table of 200,000 chunks one user
has 10,000 in 100 conversations, one has half of the table, and the others 1,000 each. The ranking uses keywords and
vectors with the default weights; recall@10 is of vectors only, against brute force. With 1,536 dimensions the index is
measured on a table of 50,000. `server CPU` is the CPU time of the one server process without parallel workers; other
load affects it less. p95 of fewer than 20 rounds is unreliable. Hybrid search filters by owner in both halves and reads
the same vectors.
""",
    "price": """
The same calls with and without what can be left out. Times are of the processor, of the server's process and the
client's together. Signals and topics were taken out of a copy of the schema; usage is counted behind the answers, by a
worker, so it is in none of these calls. Without an embedder the index is at its cheapest, and what finding signals adds
weighs most. Users of spaces are signed in, each over a connection of their own.
""",
    "retrieval": """
Recall of the evidence, measured by `make bench-retrieval` on the development half of LoCoMo (conversations 26, 30,
42, 43 and 49 of `locomo10.json`): all-MiniLM-L6-v2, one vector for each message, a real Postgres, no language model.
""",
}
"""How some benchmarks measure."""


@dataclass(frozen=True)
class Kept:
    """A benchmark's latest run.

    Attributes:
        date: When it ended.
        quick: Whether it had few rounds.
        load: The machine's five-minute load meanwhile; `None` if unknown.
        seconds: Its duration, in seconds; `None` if unknown.
        tables: Its results.
    """

    date: str
    quick: bool
    load: float | None
    seconds: float | None
    tables: list[Table]


def keep(name: str, run: Kept) -> None:
    """Replace the previous run, and rewrite the page."""
    kept = {**_read(), name: run}
    _STORED.write_text(json.dumps({each: asdict(run) for each, run in kept.items()}, indent=1) + "\n")
    if "beside" in kept and "counts" in kept:
        write(kept)


def _read() -> dict[str, Kept]:
    if not _STORED.exists():
        return {}
    found = json.loads(_STORED.read_text())
    return {name: Kept(**{**run, "tables": [Table(**each) for each in run["tables"]]}) for name, run in found.items()}


def write(kept: dict[str, Kept]) -> None:
    """Write the page: an introduction for new readers, the targets, then every table."""
    sections = [_section(name, kept[name]) for name in sorted(kept, key=lambda name: name != "turn")]
    parts = [_INTRODUCTION, _turns(kept), _lead(kept), _targets(kept), _where_the_time_goes(kept), *sections]
    _PAGE.write_text("\n".join(part for part in parts if part))


_INTRODUCTION: Final = """# Results

Written from the tables of `make bench ARGS=--keep`, as medians. The machine has two cores, which other work shares:
compare ratios, not milliseconds. Tables of different benchmarks may come from different runs.
"""


def _turns(kept: dict[str, Kept]) -> str:
    """Return what a user runs first: a default agent's turn."""
    if "turn" not in kept:
        return ""
    alone, _, together, _ = kept["turn"].tables
    columns = [column for column in alone.columns if column.endswith("sync")]
    heads = ["", *(f"{column}, ms" for column in columns), "64 at once, turns per second"]
    lines = [
        [
            str(row[0]),
            *(_shown(_number(alone, str(row[0]), column)) for column in columns),
            _shown(_number(together, str(row[0]), "turns per second")),
        ]
        for row in alone.rows
    ]
    table = "\n".join(f"| {' | '.join(line)} |" for line in [heads, ["---"] * len(heads), *lines])
    return f"""## What a user runs first: a default agent's turn

`create_agent` with a model that answers at once, in a conversation that already holds so many messages. Of six user's
messages four ask for something that was said before.

{table}
"""


def _lead(kept: dict[str, Kept]) -> str:
    beside = kept["beside"]
    whom = {
        DIRECT: "this package, direct", DATA_API: "this package, Data API", CAREFUL: "supabase-py, by hand",
        HISTORY: "langchain-postgres", SAVER: "LangGraph's saver", FLOOR_LC: "the least possible",
    }  # fmt: skip
    append, load = _table(beside, APPEND_TITLE), _table(beside, LOAD_TITLE)
    rates, processor = _table(beside, TURNS_TITLE), _table(beside, PROCESSOR_TITLE)
    there = [name for name in whom if name in {row[0] for row in rates.rows}]
    wanted = [
        ("store a turn in a conversation of 1,000 messages, ms", append, "1,000 messages, ms"),
        ("load the next prompt's context from 1,000 messages, ms", load, "1,000 messages, ms"),
        ("load the next prompt's context from 100,000 messages, ms", load, "100,000 messages, ms"),
        ("turns per second, one conversation", rates, "1 at once"),
        ("turns per second, 64 conversations at once", rates, "64 at once"),
        ("client CPU time per turn, ms", processor, "1 at once"),
    ]
    lines = [
        f"| {what} | {' | '.join(_shown(_number(table, name, column)) for name in there)} |"
        for what, table, column in wanted
        if column in table.columns
    ]
    at_64 = {name: _number(rates, name, "64 at once") for name in there}
    others = {name: at_64[name] for name in (CAREFUL, HISTORY, SAVER) if name in at_64}
    best = max(others, key=lambda name: others[name])
    largest = next(column for column in reversed(load.columns) if column.endswith(" messages, ms"))
    growing = (
        f"At {largest.removesuffix(', ms')} {whom[HISTORY]} needs {_shown(_number(load, HISTORY, largest))} ms"
        f" per load, this package {_shown(_number(load, DIRECT, largest))} ms."
        if HISTORY in at_64
        else ""
    )
    cost = _number(append, DIRECT, "1,000 messages, ms") - _number(append, FLOOR_LC, "1,000 messages, ms")
    text = f"""## Compared with alternatives

An agent's turn loads the context for the next prompt and stores a question and an answer. The table shows the cost with
this package, with common alternatives, and with the least possible: one narrow table, prepared statements, no
guarantees. "By hand" is a careful application on supabase-py: a batch insert and the last 28 messages.

| | {" | ".join(whom[name] for name in there)} |
| --- |{" --- |" * len(there)}
"""
    points = [
        "This package numbers the turn without gaps, stores it once even if retried, and marks the work that follows."
        f" Compared with the least possible, that costs {cost:.1f} ms on this machine.",
        f"{_rows_of_a_load(kept)} {growing}".strip(),
        f"With 64 conversations at once this package handles {_times(at_64[DIRECT], others[best])} the turns of"
        f" {whom[best]}, the fastest alternative, over a direct connection, and"
        f" {_times(at_64[DATA_API], others[best])} through the Data API. Its process uses the CPU for"
        f" {at_64[DIRECT] * _number(processor, DIRECT, '64 at once') / 1000:.0%} of the time over the direct"
        f" connection, and {at_64[DATA_API] * _number(processor, DATA_API, '64 at once') / 1000:.0%} through the"
        " Data API.",
    ]
    return text + "\n".join(lines) + "\n\n" + _listed(points)


def _rows_of_a_load(kept: dict[str, Kept]) -> str:
    if "growth" not in kept:
        return ""
    table = _table(kept["growth"], CONVERSATION_TITLE)
    row = next(each for each in table.rows if each[0] == "context pack")
    columns = [place for place, column in enumerate(table.columns) if column.startswith("rows at ")]
    counts = [f"{row[place]} {table.columns[place].removeprefix('rows ')}" for place in columns]
    return f"The rows that a load reads do not depend on the length of the conversation: {', '.join(counts)}."


def _targets(kept: dict[str, Kept]) -> str:
    """Return the targets and their status: the verdicts of the benchmarks that have targets."""
    lines = [
        _target(table.title, note)
        for name in (
            "turn",
            "beside",
            "counts",
            "turns",
            "imports",
            "transfer",
            "inspector",
            "growth",
            "price",
            "retrieval",
        )
        if name in kept
        for table in kept[name].tables
        if name != "turns" or table.title == MANIFEST_TITLE
        for note in table.notes
        if note.startswith(("met ", "MISSED ")) and "all other" not in note and "all verbs" not in note
    ]
    return "## Targets\n\n| target | measured and bound | met |\n| --- | --- | --- |\n" + "\n".join(lines) + "\n"


def _target(title: str, note: str) -> str:
    what, _, measured = note[7:].rpartition(": ")
    return f"| {title}: {what} | {measured} | {'yes' if note.startswith('met') else '**no**'} |"


def _where_the_time_goes(kept: dict[str, Kept]) -> str:
    """Explain the time of what misses its target, from parts that were measured separately."""
    append = _table(kept["beside"], APPEND_TITLE)
    column = "1,000 messages, ms"
    lock, sql, whole = (_number(append, name, column) for name in (LOCK, SQL, DIRECT))
    lines = [
        f"**An append**: locking the counter and inserting the same rows takes {lock:.2f} ms, `memory_append` with"
        f" prepared JSON {sql:.2f} ms, and the whole verb {whole:.2f} ms. `memory_append` also marks due work and"
        " checks for existing ids and foreign keys. The verb adds Python: ids, checks, JSON."
    ]
    if "context" in kept:
        direct = next(table for table in kept["context"].tables if table.title.startswith("Context, direct"))
        fitting = next(table for table in kept["context"].tables if table.title.startswith("Fitting"))
        floor, called, verb = (_number(direct, f"async: {name}", column[:-4]) for name in _CONTEXT)
        made, fitted = (_number(fitting, "1,000", name) for name in ("ms to make messages", "ms to fit them"))
        lines.append(
            f"**A load**: `memory_context` takes {called:.2f} ms, creating the messages {made:.2f} ms and fitting them"
            f" to the budget {fitted:.2f} ms, of {verb:.2f} ms in total. Reading and creating the same messages from a"
            f" wide row takes {floor:.2f} ms. The rest is the JSON of the answer, the connection and the flow."
        )
    return "## Where the time goes\n\n" + _listed(lines)


def _section(name: str, run: Kept) -> str:
    about = _ABOUT.get(name, "").rstrip()
    quick = ", with few rounds (`--quick`)" if run.quick else ""
    load = "" if run.load is None else f"; the machine's load was {run.load:.1f}"
    took = "" if run.seconds is None else f"; it took {run.seconds:,.0f} s"
    tables = "\n\n".join(f"```\n{table.text().removeprefix('## ')}\n```" for table in run.tables)
    return f"# {name.capitalize()}\n{about}\n\nMeasured on {run.date}{quick}{load}{took}.\n\n{tables}\n"


def _table(run: Kept, title: str) -> Table:
    return next(table for table in run.tables if table.title == title)


def _number(table: Table, row: str, column: str) -> float:
    found = next(each for each in table.rows if each[0] == row)
    return float(found[table.columns.index(column)])


def _listed(sentences: list[str]) -> str:
    wrapped = (
        fill(each, 120, initial_indent="- ", subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for each in sentences
    )
    return "\n".join(wrapped) + "\n"


def _shown(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def _times(value: float, other: float) -> str:
    return f"{value / other:.2f} times"


if __name__ == "__main__":
    write(_read())
