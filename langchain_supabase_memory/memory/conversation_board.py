# Written by tools/handles.py. Do not edit.
"""Operations on a conversation's board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationPartHandle, load

if TYPE_CHECKING:
    from datetime import datetime

    from langchain_supabase_memory.operations.boards.board import Board, BoardItem
    from langchain_supabase_memory.operations.boards.kinds import BoardItemKind
    from langchain_supabase_memory.operations.boards.perspective import Perspective
    from langchain_supabase_memory.operations.boards.schema import AuthorKind
    from langchain_supabase_memory.values import BoardResult


class ConversationBoard(ConversationPartHandle):
    """A conversation's board: a summary, and items of each kind that `operations.boards.kinds` lists.

    Changes by a person survive every regeneration: no model changes items that a person wrote, supersedes pinned
    items, or restores deleted ones.
    """

    def read(
        self, *, history: bool = False, perspective: Perspective | None = None, at: datetime | None = None
    ) -> Board:
        """Return the board: its summary and the items of each kind; as it is, or as it was at an instant.

        At an instant, items that were added later are absent, and those that were superseded, closed or edited later
        are as they were. What a person has deleted since, and what was read from messages that are forgotten, stays
        deleted.

        Args:
            history: Whether to include the changes that people made.
            perspective: What an agent watches: its order of the items that hold, without kinds that it is not shown;
                the others come last.
            at: The instant, with a time zone, by the database's clock; now by default.

        Returns:
            The board; an empty one if none exists, or if none existed then.

        Raises:
            ConfigurationError: It is no perspective.
            InvalidInputError: The time is naive.
        """
        from langchain_supabase_memory.operations.boards.board import read_board

        return self._services.run(
            read_board(
                self._key, history=history, retention=self._services.settings.retention, perspective=perspective, at=at
            )
        )

    async def aread(
        self, *, history: bool = False, perspective: Perspective | None = None, at: datetime | None = None
    ) -> Board:
        """The async twin of `read`."""
        await load("langchain_supabase_memory.operations.boards.board")
        from langchain_supabase_memory.operations.boards.board import read_board

        return await self._services.arun(
            read_board(
                self._key, history=history, retention=self._services.settings.retention, perspective=perspective, at=at
            )
        )

    def add(
        self,
        kind: BoardItemKind,
        text: str,
        *,
        actor: str,
        entity_type: str | None = None,
        state: str | None = None,
        author_kind: AuthorKind = "person",
        begin: bool = False,
    ) -> str:
        """Add an item to the board; adding the same item twice adds it once.

        Args:
            kind: The item's kind, such as `fact` or `action`; the page on boards lists all kinds.
            text: The item's text, up to 500 characters.
            actor: Who adds it.
            entity_type: For an entity, its type: a person, a place, an organization, a date or other.
            state: A state of its kind; the first one by default.
            author_kind: The kind of `actor`: `person`, `application` or `model`. Context packs name it. An item by a
                model does not count as a person's: a summarizer may change it.
            begin: Whether to create the conversation if it does not exist.

        Returns:
            The item's id.

        Raises:
            InvalidInputError: The kind, the type, the state or the text is not valid, or a model adds a deleted item.
            NotFoundError: The conversation does not exist, and `begin` is false.
        """
        from langchain_supabase_memory.operations.boards.editing import add_item

        return self._services.run(
            add_item(
                self._key,
                kind,
                text,
                actor=actor,
                entity_type=entity_type,
                state=state,
                author_kind=author_kind,
                begin=begin,
                redactor=self._services.redactor,
            )
        )

    async def aadd(
        self,
        kind: BoardItemKind,
        text: str,
        *,
        actor: str,
        entity_type: str | None = None,
        state: str | None = None,
        author_kind: AuthorKind = "person",
        begin: bool = False,
    ) -> str:
        """The async twin of `add`."""
        await load("langchain_supabase_memory.operations.boards.editing")
        from langchain_supabase_memory.operations.boards.editing import add_item

        return await self._services.arun(
            add_item(
                self._key,
                kind,
                text,
                actor=actor,
                entity_type=entity_type,
                state=state,
                author_kind=author_kind,
                begin=begin,
                redactor=self._services.redactor,
            )
        )

    def edit(
        self,
        item: BoardItem | str,
        *,
        actor: str,
        text: str | None = None,
        state: str | None = None,
        author_kind: AuthorKind = "person",
    ) -> None:
        """Change an item's text or state.

        Args:
            item: The item, or its id.
            actor: Who changes it.
            text: The new text.
            state: The new state.
            author_kind: The kind of `actor`: `person`, `application` or `model`. A model changes only items that nobody
                else wrote, changed or pinned.

        Raises:
            InvalidInputError: Nothing changes, the text is not valid, the board already has such an item, or a model
                may not change this one.
            NotFoundError: There is no such item.
        """
        from langchain_supabase_memory.operations.boards.editing import edit_item

        self._services.run(
            edit_item(
                self._key,
                item,
                actor=actor,
                text=text,
                state=state,
                author_kind=author_kind,
                redactor=self._services.redactor,
            )
        )

    async def aedit(
        self,
        item: BoardItem | str,
        *,
        actor: str,
        text: str | None = None,
        state: str | None = None,
        author_kind: AuthorKind = "person",
    ) -> None:
        """The async twin of `edit`."""
        await load("langchain_supabase_memory.operations.boards.editing")
        from langchain_supabase_memory.operations.boards.editing import edit_item

        await self._services.arun(
            edit_item(
                self._key,
                item,
                actor=actor,
                text=text,
                state=state,
                author_kind=author_kind,
                redactor=self._services.redactor,
            )
        )

    def pin(self, item: BoardItem | str, *, actor: str, pinned: bool = True) -> None:
        """Pin or unpin an item: pinned items come first, and no model supersedes or closes them.

        Args:
            item: The item, or its id.
            actor: Who does it.
            pinned: Whether to pin or to unpin it.

        Raises:
            NotFoundError: There is no such item.
        """
        from langchain_supabase_memory.operations.boards.editing import pin_item

        self._services.run(pin_item(self._key, item, actor=actor, pinned=pinned))

    async def apin(self, item: BoardItem | str, *, actor: str, pinned: bool = True) -> None:
        """The async twin of `pin`."""
        await load("langchain_supabase_memory.operations.boards.editing")
        from langchain_supabase_memory.operations.boards.editing import pin_item

        await self._services.arun(pin_item(self._key, item, actor=actor, pinned=pinned))

    def delete(self, item: BoardItem | str, *, actor: str) -> None:
        """Delete an item permanently: its text is deleted, and no model adds it again.

        The messages stay in the history: to delete those, call `forget_message`.

        Args:
            item: The item, or its id.
            actor: Who does it.

        Raises:
            NotFoundError: There is no such item.
        """
        from langchain_supabase_memory.operations.boards.editing import delete_item

        self._services.run(delete_item(self._key, item, actor=actor))

    async def adelete(self, item: BoardItem | str, *, actor: str) -> None:
        """The async twin of `delete`."""
        await load("langchain_supabase_memory.operations.boards.editing")
        from langchain_supabase_memory.operations.boards.editing import delete_item

        await self._services.arun(delete_item(self._key, item, actor=actor))

    def edit_summary(self, text: str, *, actor: str, author_kind: AuthorKind = "person") -> None:
        """Write a summary that comes before the generated one; an empty text removes it.

        Args:
            text: The summary, up to 10,000 characters.
            actor: Who writes it.
            author_kind: The kind of `actor`: `person` or `application`.

        Raises:
            InvalidInputError: It is not a string, is longer than 10,000 characters, or a model writes it.
            NotFoundError: There is no such conversation.
        """
        from langchain_supabase_memory.operations.boards.editing import edit_summary

        self._services.run(
            edit_summary(self._key, text, actor=actor, author_kind=author_kind, redactor=self._services.redactor)
        )

    async def aedit_summary(self, text: str, *, actor: str, author_kind: AuthorKind = "person") -> None:
        """The async twin of `edit_summary`."""
        await load("langchain_supabase_memory.operations.boards.editing")
        from langchain_supabase_memory.operations.boards.editing import edit_summary

        await self._services.arun(
            edit_summary(self._key, text, actor=actor, author_kind=author_kind, redactor=self._services.redactor)
        )

    def revise(self) -> BoardResult:
        """Bring the board up to the newest message now, whether it is due or not.

        Returns:
            The result. If the model fails, nothing is changed and nothing is raised.

        Raises:
            ConfigurationError: There is no model.
        """
        from langchain_supabase_memory.operations.boards.revise import revise_board

        return self._services.run(
            revise_board(
                self._key,
                self._services.config.board_policy,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
                profile=self._services.config.profile,
            )
        )

    async def arevise(self) -> BoardResult:
        """The async twin of `revise`."""
        await load("langchain_supabase_memory.operations.boards.revise")
        from langchain_supabase_memory.operations.boards.revise import revise_board

        return await self._services.arun(
            revise_board(
                self._key,
                self._services.config.board_policy,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
                profile=self._services.config.profile,
            )
        )

    def regenerate(self, *, actor: str) -> BoardResult:
        """Regenerate the board from the messages; what a person wrote, edited, pinned or deleted is preserved.

        Args:
            actor: Who requests it.

        Raises:
            ConfigurationError: There is no model.
            NotFoundError: There is no such conversation.
        """
        from langchain_supabase_memory.operations.boards.revise import regenerate_board

        return self._services.run(
            regenerate_board(
                self._key,
                self._services.config.board_policy,
                actor=actor,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
                profile=self._services.config.profile,
            )
        )

    async def aregenerate(self, *, actor: str) -> BoardResult:
        """The async twin of `regenerate`."""
        await load("langchain_supabase_memory.operations.boards.revise")
        from langchain_supabase_memory.operations.boards.revise import regenerate_board

        return await self._services.arun(
            regenerate_board(
                self._key,
                self._services.config.board_policy,
                actor=actor,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
                profile=self._services.config.profile,
            )
        )
