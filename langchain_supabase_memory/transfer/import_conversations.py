"""Conversations from elsewhere, in both colors."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.require_memory import require_memory
from langchain_supabase_memory.transfer.import_flow import Importer

if TYPE_CHECKING:
    from collections.abc import Callable

    from langchain_supabase_memory.effects import Flow
    from langchain_supabase_memory.memory.memory import SupabaseMemory
    from langchain_supabase_memory.transfer.values import ImportReceipt, Source, ThreadStart


def import_conversations(
    memory: SupabaseMemory,
    source: Source,
    *,
    agent_id: str | None = None,
    owner: Callable[[ThreadStart], str] | None = None,
    dry_run: bool = False,
    skip: bool = False,
    progress: Callable[[ImportReceipt], None] | None = None,
) -> ImportReceipt:
    """Store conversations from elsewhere, each message once, in order, with its own time.

    The messages are redacted as the memory redacts, its retention and the user's opt-outs hold. Ids are derived from
    what the source holds: a repeat stores nothing twice, and one that was interrupted goes on. What is there already is
    never replaced. Summaries, boards and chunks are made afterwards, by a worker. The async twin reads the source in
    threads.

    Args:
        memory: The memory.
        source: What to import: one of `langchain_supabase_memory.transfer.sources`, or a generator of your own.
        agent_id: Their agent, where the source names none; the memory's by default.
        owner: Whose a conversation is, for a source with conversations of several users; in place of the memory's.
        dry_run: Only read the source, and say what would be stored.
        skip: Note what cannot be read in the receipt and go on; otherwise the first of it ends the import.
        progress: Told the receipt so far, after each call.

    Returns:
        What was stored, what was there, and what could not be kept.

    Raises:
        InvalidInputError: Something in the source cannot be read. The error says where it stands; what stands before
            it is stored.
        MissingDependencyError: What reads the source is not installed.
        SupabaseMemoryError: The database refused or could not be reached; the same import goes on from there.
    """
    return require_memory(memory)._services.run(_flow(memory, source, agent_id, owner, dry_run, skip, progress))


async def aimport_conversations(
    memory: SupabaseMemory,
    source: Source,
    *,
    agent_id: str | None = None,
    owner: Callable[[ThreadStart], str] | None = None,
    dry_run: bool = False,
    skip: bool = False,
    progress: Callable[[ImportReceipt], None] | None = None,
) -> ImportReceipt:
    """The async twin of `import_conversations`."""
    return await require_memory(memory)._services.arun(_flow(memory, source, agent_id, owner, dry_run, skip, progress))


def _flow(
    memory: SupabaseMemory,
    source: Source,
    agent_id: str | None,
    owner: Callable[[ThreadStart], str] | None,
    dry_run: bool,
    skip: bool,
    progress: Callable[[ImportReceipt], None] | None,
) -> Flow[ImportReceipt]:
    made = Importer(memory._services, agent_id=agent_id, owner=owner, dry_run=dry_run, skip=skip, progress=progress)
    return made.flow(source)
