# Written by tools/handles.py. Do not edit.
"""Operations on a conversation's chunks."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationPartHandle, load

if TYPE_CHECKING:
    import builtins

    from langchain_supabase_memory.values import Chunk


class ConversationChunks(ConversationPartHandle):
    """A conversation's chunks, which recall searches."""

    def list(self) -> builtins.list[Chunk]:
        """List the chunks that have not expired, in order."""
        from langchain_supabase_memory.operations.recall.indexing import chunks

        return self._services.run(chunks(self._key))

    async def alist(self) -> builtins.list[Chunk]:
        """The async twin of `list`."""
        await load("langchain_supabase_memory.operations.recall.indexing")
        from langchain_supabase_memory.operations.recall.indexing import chunks

        return await self._services.arun(chunks(self._key))

    def reembed(self, *, drop: bool = False) -> int:
        """Embed every chunk with the memory's embedder. The vectors of other models stay in use meanwhile.

        Args:
            drop: Whether to delete the vectors of other models, once every chunk has one of this model.

        Returns:
            How many chunks were embedded.

        Raises:
            ConfigurationError: There is no embedder.
            EmbeddingError: The embedder failed; finished work stays, and the next call continues.
            MigrationConflictError: With `drop`, others kept indexing with another embedder; nothing was deleted.
        """
        from langchain_supabase_memory.operations.recall.indexing import reembed

        return self._services.run(reembed(self._key, embedder=self._services.require_embedder(), drop=drop))

    async def areembed(self, *, drop: bool = False) -> int:
        """The async twin of `reembed`."""
        await load("langchain_supabase_memory.operations.recall.indexing")
        from langchain_supabase_memory.operations.recall.indexing import reembed

        return await self._services.arun(reembed(self._key, embedder=self._services.require_embedder(), drop=drop))
