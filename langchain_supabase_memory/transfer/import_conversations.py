"""Import of conversations, sync and async."""

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
    """Import conversations: store each message once, in order, with its own time.

    The memory's redaction and retention and the user's opt-outs apply. Ids are derived from the source's content, so a
    repeated import stores nothing twice, and an interrupted one can resume. Existing messages are never replaced. A
    worker creates summaries, boards and chunks afterwards. The async twin reads the source in threads.

    Args:
        memory: The memory.
        source: What to import: one of `langchain_supabase_memory.transfer.sources`, or your own generator.
        agent_id: The conversations' agent, if the source names none; by default the memory's.
        owner: Returns a conversation's owner, for a source with several users; replaces the memory's owner.
        dry_run: Only read the source, and report what would be stored.
        skip: Record unreadable items in the receipt and continue; otherwise the first one ends the import.
        progress: Called with the receipt so far, after each call.

    Returns:
        What was stored, what already existed, and what could not be stored.

    Raises:
        InvalidInputError: Something in the source cannot be read. The error gives its location; everything before it is
            stored.
        MissingDependencyError: A package that reads the source is not installed.
        SupabaseMemoryError: The database refused or could not be reached; repeating the import resumes there.
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
