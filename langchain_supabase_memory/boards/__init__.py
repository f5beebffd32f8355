"""The board of a conversation: its living summary, with facts, entities, topics, action items and questions.

- `answer`: what a writer answers, as a schema.
- `reading`: an answer checked against what was said.
- `revise`: the flow that brings a board up to the newest message.
- `board`: the board as a value, and what a person changes of it.
- `verbs`: the same for who holds a memory, in both colors.
- `card`: the board as a card in a notebook.
"""

from __future__ import annotations

from langchain_supabase_memory.boards.board import board, edit
from langchain_supabase_memory.boards.revise import revise

__all__ = ["board", "edit", "revise"]
