"""The table of `status`: a line for each conversation that fits a terminal, or that is whole in a pipe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from rich.text import Text

from langchain_supabase_memory.cli import look
from langchain_supabase_memory.language.messages.invisible import spell_out
from langchain_supabase_memory.values import DEFAULT_AGENT_ID

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from rich.console import Console

    from langchain_supabase_memory.operations.work import ConversationStatus, Pause

_IDS: Final = ("user", "agent", "thread")
_COUNTS: Final = ("state", "said", "summary", "index", "board", "saved")
_DROPPED: Final = ("saved", "board", "index", "summary", "said", "agent", "user")
"""What is left out where a terminal has no room for it, the first first."""

_GAP: Final = 2
_LEAST: Final = 10
"""The columns that an id is worth showing in."""


def lines(rows: Sequence[ConversationStatus]) -> list[str]:
    """A heading and a line for each conversation, for a pipe: tabs between, ids as a whole, the errors at the end.

    Args:
        rows: The conversations.
    """
    made: list[tuple[str, ...]] = [(*_IDS, *_COUNTS, "error")] if rows else []
    for row in rows:
        made.append((*map(spell_out, _ids(row).values()), *_counts(row).values(), spell_out("; ".join(_errors(row)))))
    return ["\t".join(cells) for cells in made]


def show(rows: Sequence[ConversationStatus], console: Console, *, wide: bool) -> None:
    """Show conversations on a terminal, each on a line, and what failed below.

    Args:
        rows: The conversations.
        console: Where.
        wide: Whether ids are whole, and the terminal may break the lines.
    """
    cells = [{**{name: look.shown_id(each) for name, each in _ids(row).items()}, **_counts(row)} for row in rows]
    needed = {name: max(look.width(name), *(look.width(each[name]) for each in cells)) for name in cells[0]}
    if all(row.key.agent_id == DEFAULT_AGENT_ID for row in rows):
        del needed["agent"]  # it says nothing
    widths = needed if wide else _widths(needed, console.width)
    console.print(_line({name: name for name in widths}, widths, dict.fromkeys(widths, "bold")), soft_wrap=True)
    for row in rows:
        shown = {name: look.shown_id(each, widths.get(name)) for name, each in _ids(row).items()}
        console.print(_line({**shown, **_counts(row)}, widths, {"state": look.STATES[row.state]}), soft_wrap=True)
    failed = [row for row in rows if _errors(row)]
    if failed:
        console.print()
    for row in failed:
        for place, error in enumerate(_errors(row)):
            if place == 0:
                names = [name for name in _IDS if name in needed]
                fitting = _widths({name: needed[name] for name in names}, console.width)
                of = needed if wide else {name: fitting.get(name, _LEAST) for name in names}
                ids = Text("  ").join(Text(look.shown_id(_ids(row)[name], of[name])) for name in names)
                console.print(ids, soft_wrap=True)
            console.print(Text(f"  {spell_out(error)}", look.STATES[row.state]), soft_wrap=True)


def _ids(row: ConversationStatus) -> dict[str, str]:
    return dict(zip(_IDS, (row.key.user_id or "", row.key.agent_id, row.key.thread_id), strict=True))


def _counts(row: ConversationStatus) -> dict[str, str]:
    """What is told of a conversation beside its ids, by the name of the column."""
    covered = (row.summarized_through, row.indexed_through, row.board_through)
    shares = (_share(through + 1, row.next_sequence) for through in covered)
    return dict(zip(_COUNTS, (row.state, f"{row.messages:,}", *shares, f"{row.tokens_saved:,}"), strict=True))


def _share(done: int, of: int) -> str:
    """How much is done, never all before it is."""
    if done <= 0:
        return "–"
    return "100%" if done >= of else f"{min(99, 100 * done // of)}%"


def _errors(row: ConversationStatus) -> list[str]:
    """What failed, and what becomes of it."""
    told = [f"{duty}: {each.error}, {_what_now(each)}" for duty, each in sorted(row.paused.items()) if duty != "all"]
    return told or ([row.error] if row.error else [])


def _what_now(pause: Pause) -> str:
    times = f"{pause.failures} failure{'s' * (pause.failures != 1)}"
    return f"given up after {times}" if pause.until is None else f"{times}, again {pause.until.astimezone():%H:%M:%S}"


def _line(cells: Mapping[str, str], widths: Mapping[str, int], styles: Mapping[str, str]) -> Text:
    """Cells below each other: ids and states from the left, numbers from the right."""
    line = Text()
    for name, width in widths.items():
        pad = " " * (width - look.width(cells[name]))
        text = cells[name] + pad if name in (*_IDS, "state") else pad + cells[name]
        line.append(" " * _GAP if line else "")
        line.append(text, styles.get(name, ""))
    line.rstrip()
    return line


def _widths(needed: Mapping[str, int], room: int) -> dict[str, int]:
    """The columns that there is room for, and how wide each is: ids share what the others leave."""
    names = list(needed)
    for dropped in _DROPPED:
        least = sum(min(needed[name], _LEAST) if name in _IDS else needed[name] for name in names)
        if least + _GAP * (len(names) - 1) <= room:
            break
        names = [name for name in names if name != dropped]
    ids = sorted((name for name in names if name in _IDS), key=lambda name: needed[name])
    left = room - _GAP * (len(names) - 1) - sum(needed[name] for name in names if name not in _IDS)
    given: dict[str, int] = {}
    for place, name in enumerate(ids):
        given[name] = max(1, min(needed[name], left // (len(ids) - place)))
        left -= given[name]
    return {name: given.get(name, needed[name]) for name in names}
