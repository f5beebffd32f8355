# Written by tools/handles.py. Do not edit.
"""What is done with a conversation's board."""

from __future__ import annotations

from typing import TYPE_CHECKING

from langchain_supabase_memory.memory.handle import ConversationHandle
from langchain_supabase_memory.operations.boards.board import Board, BoardItem, read_board
from langchain_supabase_memory.operations.boards.editing import add_item, delete_item, edit_item, edit_summary, pin_item
from langchain_supabase_memory.operations.boards.revise import regenerate_board, revise_board

if TYPE_CHECKING:
    from langchain_supabase_memory.operations.boards.kinds import BoardItemKind
    from langchain_supabase_memory.operations.boards.schema import AuthorKind
    from langchain_supabase_memory.values import BoardResult


class ConversationBoard(ConversationHandle):
    """A conversation's board: facts, entities, topics, action items and questions, with a summary.

    What a person adds, edits, pins or deletes survives every regeneration: no model changes what a person wrote,
    supersedes what is pinned, or brings back what was deleted.
    """

    def read(self, *, history: bool = False) -> Board:
        """The board: its living summary with facts, entities, topics, action items and questions.

        Args:
            history: Whether what people changed comes with it.

        Returns:
            The board; an empty one if there is none.
        """
        return self._services.run(read_board(self._key, history=history, retention=self._services.settings.retention))

    async def aread(self, *, history: bool = False) -> Board:
        """The async twin of `read`."""
        return await self._services.arun(
            read_board(self._key, history=history, retention=self._services.settings.retention)
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
        """Write an item on the board; the same twice is one.

        Args:
            kind: What it is, such as `fact` or `action`; the page on boards has all kinds.
            text: What it says, up to 500 characters.
            actor: Who writes it.
            entity_type: Of an entity, what it is: a person, a place, an organization, a date or other.
            state: One of the states of its kind; the first of them by default.
            author_kind: What `actor` is: `person`, `application` or `model`. Packs say so, and what a model notes is
                no person's word: a writer may change it.
            begin: Whether a conversation that has not begun begins with this item.

        Returns:
            The item's id.

        Raises:
            InvalidInputError: The kind, the type, the state or the text is none, or a model writes what was deleted.
            NotFoundError: There is no such conversation, and it is not to begin.
        """
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
        """Change an item's words or state.

        Args:
            item: The item, or its id.
            actor: Who changes it.
            text: What it says from now on.
            state: Its state from now on.
            author_kind: What `actor` is: `person`, `application` or `model`. A model changes only what nobody else
                wrote, changed or pinned.

        Raises:
            InvalidInputError: Nothing is changed, the text is none, the board has such an item already, or a model may
                not change this one.
            NotFoundError: There is no such item.
        """
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
        """Hold on to an item, or let go of it: what is pinned stands first, and no model supersedes or closes it.

        Args:
            item: The item, or its id.
            actor: Who does it.
            pinned: Whether it is pinned from now on.

        Raises:
            NotFoundError: There is no such item.
        """
        self._services.run(pin_item(self._key, item, actor=actor, pinned=pinned))

    async def apin(self, item: BoardItem | str, *, actor: str, pinned: bool = True) -> None:
        """The async twin of `pin`."""
        await self._services.arun(pin_item(self._key, item, actor=actor, pinned=pinned))

    def delete(self, item: BoardItem | str, *, actor: str) -> None:
        """Delete an item for good: its words go, and no model writes the same again.

        What was said stays in the history: to forget that, call `forget_message`.

        Args:
            item: The item, or its id.
            actor: Who does it.

        Raises:
            NotFoundError: There is no such item.
        """
        self._services.run(delete_item(self._key, item, actor=actor))

    async def adelete(self, item: BoardItem | str, *, actor: str) -> None:
        """The async twin of `delete`."""
        await self._services.arun(delete_item(self._key, item, actor=actor))

    def edit_summary(self, text: str, *, actor: str, author_kind: AuthorKind = "person") -> None:
        """Write what the board's summary is to say first; an empty text takes that back.

        Args:
            text: What it says, up to 10,000 characters.
            actor: Who writes it.
            author_kind: What that is: `person` or `application`.

        Raises:
            InvalidInputError: It is no text, or longer than 10,000 characters; or a model is to write it.
            NotFoundError: There is no such conversation.
        """
        self._services.run(
            edit_summary(self._key, text, actor=actor, author_kind=author_kind, redactor=self._services.redactor)
        )

    async def aedit_summary(self, text: str, *, actor: str, author_kind: AuthorKind = "person") -> None:
        """The async twin of `edit_summary`."""
        await self._services.arun(
            edit_summary(self._key, text, actor=actor, author_kind=author_kind, redactor=self._services.redactor)
        )

    def revise(self) -> BoardResult:
        """Bring the board up to the newest message now, whether it is due or not.

        Returns:
            What was done. A model that failed is no error: nothing is changed.

        Raises:
            ConfigurationError: There is no model.
        """
        return self._services.run(
            revise_board(
                self._key,
                self._services.config.board_policy,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
            )
        )

    async def arevise(self) -> BoardResult:
        """The async twin of `revise`."""
        return await self._services.arun(
            revise_board(
                self._key,
                self._services.config.board_policy,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
            )
        )

    def regenerate(self, *, actor: str) -> BoardResult:
        """Write the board anew from the messages; what a person wrote, edited, pinned or deleted stays so.

        Args:
            actor: Who wants that.

        Raises:
            ConfigurationError: There is no model.
            NotFoundError: There is no such conversation.
        """
        return self._services.run(
            regenerate_board(
                self._key,
                self._services.config.board_policy,
                actor=actor,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
            )
        )

    async def aregenerate(self, *, actor: str) -> BoardResult:
        """The async twin of `regenerate`."""
        return await self._services.arun(
            regenerate_board(
                self._key,
                self._services.config.board_policy,
                actor=actor,
                summarizer=self._services.summarizer_name,
                time_zone=self._services.config.time_zone,
            )
        )
