"""Pages of lists that are read whole: which part is shown, and the links to the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Sequence

    from langchain_supabase_memory.inspector.request_context import RequestContext

T = TypeVar("T")


@dataclass(frozen=True)
class ListPage(Generic[T]):
    """A page of a list.

    Attributes:
        rows: What the page shows.
        total: How many there are on all pages.
        begin: How many are before this page.
        before: The address of the page before; empty without one.
        after: The address of the page after; empty without one.
    """

    rows: Sequence[T]
    total: int
    begin: int
    before: str
    after: str

    @property
    def rest(self) -> int:
        """How many are after this page."""
        return max(0, self.total - self.begin - len(self.rows))


def list_page(context: RequestContext, everything: Sequence[T], name: str, size: int) -> ListPage[T]:
    """Return the page of a list that the address asks for.

    Args:
        context: The request.
        everything: The whole list.
        name: The argument of the address; other arguments, such as the pages of other lists, stay.
        size: How many a page shows.
    """
    begin = context.number(name) or 0
    rows = everything[begin : begin + size]

    def address(first: int) -> str:
        path = context.request.url.path.removeprefix(context.root)
        return f"{context.link(path, **{**context.query, name: first or None})}#{name}"

    return ListPage(
        rows,
        len(everything),
        begin,
        address(max(0, begin - size)) if begin else "",
        address(begin + size) if begin + size < len(everything) else "",
    )
