"""What a user's conversations are about: topics with their days, a quote, and forms to change them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.svg_charts import sparkline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.operations.topics import Topic, TopicDay

DAYS: Final = 90
"""How many days a topic's line shows."""

MAX_TOPICS: Final = 100
"""The maximum number of topics shown."""


@dataclass(frozen=True)
class TopicRow:
    """A topic as a line of the page.

    Attributes:
        topic: The topic.
        line: The points of its days, in SVG notation, in a box of 1000 by 200.
        recent: How many episodes its days have.
    """

    topic: Topic
    line: str
    recent: int


async def screen(request: Request) -> Response:
    """Render the topics."""
    context = RequestContext(request)
    if not context.has_user:
        await context.reader.for_user("inspector").topics.aread(limit=1)  # raises where the schema is another release's
        return render_page(context, "topics.html", tab="topics", rows=None, hidden=False, days=DAYS)
    mine = context.for_user("topics")
    hidden = context.query.get("hidden") == "1"
    today = datetime.now(UTC).date()
    since = datetime.combine(today - timedelta(days=DAYS - 1), datetime.min.time(), UTC)
    found, days = await gather_all(
        mine.topics.aread(hidden=hidden, limit=MAX_TOPICS), mine.topics.adays(since=since, hidden=hidden)
    )
    rows = _rows(found, days, since.date())
    return render_page(context, "topics.html", tab="topics", rows=rows, hidden=hidden, days=DAYS)


def _rows(topics: Sequence[Topic], days: Sequence[TopicDay], first: date) -> list[TopicRow]:
    counts: dict[str, list[int]] = defaultdict(lambda: [0] * DAYS)
    for each in days:
        place = (each.day - first).days
        if 0 <= place < DAYS:
            counts[each.topic_id][place] += each.episodes
    return [TopicRow(topic, sparkline(counts[topic.id]), sum(counts[topic.id])) for topic in topics]
