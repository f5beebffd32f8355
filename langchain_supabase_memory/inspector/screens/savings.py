"""What the memory saves, as a plot over the conversation: a line that grows, and a line that does not."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING, Final

from langchain_supabase_memory.context.next_prompt import budget_of
from langchain_supabase_memory.humanize import pluralize
from langchain_supabase_memory.inspector.gather import gather_all
from langchain_supabase_memory.inspector.rendering import render_page
from langchain_supabase_memory.inspector.request_context import RequestContext
from langchain_supabase_memory.inspector.screens import conversation_header
from langchain_supabase_memory.inspector.svg_charts import Plot, bar, plot

if TYPE_CHECKING:
    from collections.abc import Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from langchain_supabase_memory.values import StoredMessage

_NEWEST: Final = 1000
"""The number of newest messages in the plot: one page of a read."""

_POINTS: Final = 100


@dataclass(frozen=True)
class Savings:
    """The size of prompts over a conversation.

    Attributes:
        plot: The whole history over its messages, and the next prompt.
        first: The first message in the plot.
        last: The last message in the plot.
    """

    plot: Plot
    first: int
    last: int


async def screen(request: Request) -> Response:
    """Render the next prompt, the whole history and its growth, and the prompts compared by a rollout."""
    context = RequestContext(request)
    conversation = context.conversation()
    key = conversation._key
    head, read, compared, kept = await gather_all(
        conversation_header.load_header(context),
        conversation.aread(last=_NEWEST, columns=["tokens"]),
        context.owned(context.memory).rollout.acomparisons(key.thread_id, agent_id=key.agent_id, last=_POINTS),
        conversation.amanifests(limit=_POINTS),
    )
    newest = next(iter(kept.manifests), None)
    budget = budget_of(newest, context.memory._services.settings.budget)
    report = (await conversation.acontext(budget=budget, model=None)).report()
    return render_page(
        context,
        "savings.html",
        tab="savings",
        etag=head.etag,
        about="conversation",
        header=head,
        report=report,
        drawn=growth_plot(read, report.full_tokens, report.tokens),
        sent_bar=bar([("verbatim", report.tokens, pluralize(report.tokens, "token"), "")], report.full_tokens),
        full_bar=bar([("own", report.full_tokens, pluralize(report.full_tokens, "token"), "")]),
        measured=_pairs_plot([(each.full_tokens, each.tokens) for each in reversed(kept.manifests)]),
        measured_count=len(kept.manifests),
        compared=_pairs_plot([(each.old_tokens, each.new_tokens) for each in compared if each.new_tokens is not None]),
        compared_count=len(compared),
    )


def growth_plot(read: Sequence[StoredMessage], full: int, packed: int) -> Savings | None:
    """Return the plot of the newest messages; `None` if there are too few to draw a line.

    Args:
        read: The newest messages, in order.
        full: The tokens of the whole history.
        packed: The tokens of the next prompt.
    """
    if len(read) < 2:
        return None
    first, last = read[0].sequence, read[-1].sequence
    sizes = [message.tokens or 0 for message in read]
    before = max(0, full - sum(sizes))
    sums = [before + size for size in accumulate(sizes)]
    kept = sorted({*range(0, len(read), max(1, len(read) // _POINTS)), len(read) - 1})
    whole = [((read[at].sequence - first) / (last - first), float(sums[at])) for at in kept]
    # A prompt is never longer than the history was at that point.
    bounded = [(x, min(y, float(packed))) for x, y in whole]
    return Savings(plot([whole, bounded]), first, last)


def _pairs_plot(pairs: Sequence[tuple[int, int]]) -> Plot | None:
    """Return two lines of points at even distances; `None` if there are too few to draw a line."""
    if len(pairs) < 2:
        return None
    return plot([[(at / (len(pairs) - 1), float(pair[side])) for at, pair in enumerate(pairs)] for side in (0, 1)])
