"""Read several things at once, and leave none of them running: a connection in use outlives no page."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # its types are those of `asyncio.gather`
    from asyncio import gather as gather_all
else:

    async def gather_all(*reads):
        """Return what each of them returns, in their order; the first error is raised once all have ended."""
        found = await asyncio.gather(*reads, return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return found


__all__ = ["gather_all"]
