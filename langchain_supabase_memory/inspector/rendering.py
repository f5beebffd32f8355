"""Templates, and how things are written: numbers, times, ids, what was said. All of it is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined
from starlette.responses import HTMLResponse

from langchain_supabase_memory.inspector import svg_charts
from langchain_supabase_memory.language.messages.content import speaker
from langchain_supabase_memory.language.messages.invisible import legible, spell_out

if TYPE_CHECKING:
    from starlette.requests import Request

    from langchain_supabase_memory.inspector.request_context import RequestContext

CLIP: Final = 600
"""The characters of a message on a time line; the rest is a click away."""

_TEMPLATES: Final = Path(__file__).with_name("templates")

LONGEST: Final = 20_000
"""The characters of a message that is opened in place; the rest has a page of its own."""


def render_page(
    context: RequestContext, template: str, *, tab: str, etag: str = "", about: str = "", **values: Any
) -> HTMLResponse:
    """A page.

    Args:
        context: The request.
        template: Its template.
        tab: Where it is in the navigation.
        etag: How that stood which the page shows, so that it is told of a change.
        about: What of the memory it has to be told of; nothing by default.
        values: What the template needs beside.
    """
    asked = {name: value for name, value in context.asked.items() if name in ("user", "agent", "thread", "state")}
    events = context.link("/events", about=about, seen=etag, **asked) if about else ""
    text = _PAGES.get_template(template).render(
        context=context, link=context.link, root=context.root, tab=tab, events=events, **values
    )
    return HTMLResponse(text)


def render_error(request: Request, status: int, title: str, hint: str, *, is_away: bool = False) -> HTMLResponse:
    """A page that says what went wrong, and the next action."""
    root = request.scope.get("root_path", "")
    is_part = request.headers.get("hx-request") == "true"
    template = "part_error.html" if is_part else "error.html"
    events = f"{root}/events?about=database&seen=away" if is_away else ""
    text = _PAGES.get_template(template).render(root=root, status=status, what=title, hint=hint, events=events)
    return HTMLResponse(text, status)


def render_part(context: RequestContext, template: str, **values: Any) -> HTMLResponse:
    """A part of a page, to be put in place."""
    text = _PAGES.get_template(template).render(context=context, link=context.link, **values)
    return HTMLResponse(text)


def number(value: float | None) -> str:
    """A number with its thousands apart."""
    return "—" if value is None else f"{value:,.0f}"


def moment(value: datetime | None) -> str:
    """A day and a time, in UTC; the year where it is another."""
    if value is None:
        return "—"
    here = value.astimezone(UTC)
    year = "" if here.year == datetime.now(UTC).year else f" {here.year}"
    return f"{here.day} {here:%b}{year} {here:%H:%M}"


def day(value: datetime) -> str:
    """A day, in UTC."""
    here = value.astimezone(UTC)
    return f"{here:%A}, {here.day} {here:%B} {here.year}"


def ago(seconds: float) -> str:
    """How long something takes, in the unit that a person would say."""
    for unit, length in (("days", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= 2 * length:
            return f"{seconds // length:.0f} {unit}"
    return f"{seconds:.0f} s"


def share(part: float, total: float) -> str:
    """A part of a whole in percent."""
    return f"{part / total:.0%}".replace("%", " %") if total else "0 %"


def truncate(text: str, max_characters: int = CLIP) -> str:
    """The beginning of a text, at the end of a word where there is one."""
    if len(text) <= max_characters:
        return text
    head = text[:max_characters]
    return (head[: head.rfind(" ")] if " " in head[max_characters // 2 :] else head) + " …"


def plural(count: int, one: str, plural_form: str = "") -> str:
    """So many of something."""
    return f"{count:,} {one if count == 1 else plural_form or one + 's'}"


def etag(*values: Any) -> str:
    """How something stands, in a few letters that say nothing of it."""
    return blake2b(repr(values).encode(errors="replace"), digest_size=8).hexdigest()


def kind(author: str | None) -> str:
    """What a writer is, behind the name, where it is no person."""
    return "" if author in (None, "person") else f" ({author})"


def _environment() -> Environment:
    made = Environment(
        # All are read where this module is imported, so that no page reads a file in an event loop.
        loader=DictLoader({path.name: path.read_text(encoding="utf-8") for path in _TEMPLATES.glob("*.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "number": number,
        "moment": moment,
        "day": day,
        "ago": ago,
        "share": share,
        "truncate": truncate,
        "plural": plural,
        "legible": legible,
        "id": spell_out,
        "kind": kind,
        "speaker": speaker,
        "percent": svg_charts.percent,
    }
    return made


_PAGES: Final = _environment()
