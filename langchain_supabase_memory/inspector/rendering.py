"""Templates, and the formatting of numbers, times, ids and text. Everything is escaped."""

from __future__ import annotations

from datetime import UTC, datetime
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from jinja2 import DictLoader, Environment, StrictUndefined
from starlette.responses import HTMLResponse

from langchain_supabase_memory.humanize import duration, pluralize
from langchain_supabase_memory.inspector import svg_charts
from langchain_supabase_memory.language.messages.content import speaker
from langchain_supabase_memory.language.messages.invisible import legible, spell_out

if TYPE_CHECKING:
    from starlette.requests import Request

    from langchain_supabase_memory.inspector.request_context import RequestContext

CLIP: Final = 600
"""The number of characters shown of a message on a timeline; the rest is a click away."""

_TEMPLATES: Final = Path(__file__).with_name("templates")

LONGEST: Final = 20_000
"""The number of characters shown of a message that is opened in place; the rest has a separate page."""


def render_page(
    context: RequestContext, template: str, *, tab: str, etag: str = "", about: str = "", **values: Any
) -> HTMLResponse:
    """Render a page.

    Args:
        context: The request.
        template: The name of the template.
        tab: Its place in the navigation.
        etag: The version of the page's data, used to detect a change.
        about: The part of the memory whose changes the page receives; by default none.
        values: The template's other values.
    """
    filters = {
        name: value for name, value in context.query.items() if name in ("user", "space", "agent", "thread", "state")
    }
    events = context.link("/events", about=about, seen=etag, **filters) if about else ""
    searched = context.query.get("q", "")[:LONGEST] if tab == "search" else ""
    text = _PAGES.get_template(template).render(
        context=context, link=context.link, root=context.root, tab=tab, events=events, searched=searched, **values
    )
    return HTMLResponse(text)


def render_error(request: Request, status: int, title: str, hint: str, *, is_away: bool = False) -> HTMLResponse:
    """Render an error page with a hint."""
    root = request.scope.get("root_path", "")
    is_part = request.headers.get("hx-request") == "true"
    template = "part_error.html" if is_part else "error.html"
    events = f"{root}/events?about=database&seen=away" if is_away else ""
    text = _PAGES.get_template(template).render(root=root, status=status, what=title, hint=hint, events=events)
    return HTMLResponse(text, status)


def render_part(context: RequestContext, template: str, **values: Any) -> HTMLResponse:
    """Render a part of a page, to be inserted in place."""
    text = _PAGES.get_template(template).render(context=context, link=context.link, **values)
    return HTMLResponse(text)


def number(value: float | None) -> str:
    """Format a number with thousands separators."""
    return "—" if value is None else f"{value:,.0f}"


def moment(value: datetime | None) -> str:
    """Format a date and time in UTC; with the year if it is not the current one."""
    if value is None:
        return "—"
    here = value.astimezone(UTC)
    year = "" if here.year == datetime.now(UTC).year else f" {here.year}"
    return f"{here.day} {here:%b}{year} {here:%H:%M}"


def day(value: datetime) -> str:
    """Format a date in UTC."""
    here = value.astimezone(UTC)
    return f"{here:%A}, {here.day} {here:%B} {here.year}"


def share(part: float, total: float) -> str:
    """Format a ratio in percent."""
    return f"{part / total:.0%}".replace("%", " %") if total else "0 %"


def truncate(text: str, max_characters: int = CLIP) -> str:
    """Truncate a text, at the end of a word if there is one."""
    if len(text) <= max_characters:
        return text
    head = text[:max_characters]
    return (head[: head.rfind(" ")] if " " in head[max_characters // 2 :] else head) + " …"


def sequences(first: int, last: int) -> str:
    """Format a range of sequences: `2`, or `2 to 5`."""
    return number(first) if first == last else f"{number(first)} to {number(last)}"


def messages(first: int, last: int) -> str:
    """Format a range of messages: `message 2`, or `messages 2 to 5`."""
    return f"{'message' if first == last else 'messages'} {sequences(first, last)}"


def etag(*values: Any) -> str:
    """Return a short hash of values, which reveals nothing about them."""
    return blake2b(repr(values).encode(errors="replace"), digest_size=8).hexdigest()


def kind(author: str | None) -> str:
    """Return a suffix with the author's kind, unless it is a person."""
    return "" if author in (None, "person") else f" ({author})"


def _environment() -> Environment:
    environment = Environment(
        # All templates are read at import, so that no page reads a file in an event loop.
        loader=DictLoader({path.name: path.read_text(encoding="utf-8") for path in _TEMPLATES.glob("*.html")}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": number,
        "moment": moment,
        "day": day,
        "share": share,
        "truncate": truncate,
        "duration": duration,
        "pluralize": pluralize,
        "legible": legible,
        "id": spell_out,
        "kind": kind,
        "speaker": speaker,
        "percent": svg_charts.percent,
    }
    environment.globals |= {"sequences": sequences, "messages": messages}
    return environment


_PAGES: Final = _environment()
