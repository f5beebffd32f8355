"""Periodic removal of expired data inside an application."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from langchain_supabase_memory.adapters.telemetry.logs import error_fields
from langchain_supabase_memory.checks import positive_duration
from langchain_supabase_memory.errors import SupabaseMemoryError
from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.settings import check_settings

if TYPE_CHECKING:
    from datetime import timedelta

    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.settings import Retention

_logger = logging.getLogger(__name__)


async def cleanup(memory: SupabaseMemory, interval: timedelta, *, retention: Retention | None = None) -> None:
    """Remove expired data now and periodically, until the task is cancelled.

    A failure is logged, and the next round tries again.

    Args:
        memory: The memory; with server permissions it cleans up for all users.
        interval: The time between two rounds.
        retention: The retention; the memory's by default. Without one, only expired chunks are removed.

    Raises:
        ConfigurationError: The interval is not positive, or an argument has the wrong type.

    Example:
        ```python
        @asynccontextmanager
        async def lifespan(app: FastAPI):
            task = asyncio.create_task(cleanup(memory, timedelta(minutes=15)))
            yield
            task.cancel()
        ```
    """
    require_memory(memory)
    positive_duration("every", interval, optional=False, example="timedelta(minutes=15)")
    check_settings(retention=retention)
    while True:
        try:
            gone = await memory.aforget_expired(retention=retention)
            counts = {"memory_messages": gone.messages, "memory_conversations": gone.conversations}
            _logger.info("%d expired messages of %d conversations were removed", *counts.values(), extra=counts)
        except Exception as error:
            level = memory._services.causes.level("A clean-up failed", error, logging.ERROR, repeats=True)
            # A foreign error's text may hold content.
            reason = f": {error}" if isinstance(error, SupabaseMemoryError) else ""
            _logger.log(level, "A clean-up failed%s", reason, extra=error_fields(error))
        await asyncio.sleep(interval.total_seconds())
