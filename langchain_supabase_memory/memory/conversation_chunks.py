# Written by tools/handles.py. Do not edit.
"""What is done with a conversation's chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationHandle
from langchain_supabase_memory.operations.recall.indexing import chunks, reembed

if TYPE_CHECKING:
    import builtins

    from langchain_supabase_memory.values import Chunk


class ConversationChunks(ConversationHandle):
    """The slices of a conversation that recall finds."""

    def list(self) -> builtins.list[Chunk]:
        """The chunks that are not expired, in order."""
        return self._services.run(chunks(self._key))

    async def alist(self) -> builtins.list[Chunk]:
        """The async twin of `list`."""
        return await self._services.arun(chunks(self._key))

    def reembed(self, *, drop: bool = False) -> int:
        """Give every chunk a vector of the memory's embedder. The vectors of other models stay in use meanwhile.

        Args:
            drop: Whether to remove the vectors of other models, once no chunk lacks one of this.

        Returns:
            How many chunks were embedded.

        Raises:
            ConfigurationError: There is no embedder.
            EmbeddingError: The embedder failed; what was done so far stays, and the next call goes on.
            MigrationConflictError: With `drop`, others went on indexing with another embedder; nothing was removed.
        """
        return self._services.run(reembed(self._key, embedder=self._services.require_embedder(), drop=drop))

    async def areembed(self, *, drop: bool = False) -> int:
        """The async twin of `reembed`."""
        return await self._services.arun(reembed(self._key, embedder=self._services.require_embedder(), drop=drop))
