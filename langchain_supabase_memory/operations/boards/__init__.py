"""The board of a conversation: its living summary, with facts, entities, topics, action items and questions.

- `answer`: what a writer answers, as a schema.
- `reading`: an answer checked against what was said.
- `revise`: the flow that brings a board up to the newest message.
- `board`: the board as a value.
- `editing`: what a person changes of it.
- `card`: the board as a card in a notebook.
"""

from __future__ import annotations

from langchain_supabase_memory.operations.boards.board import read_board
from langchain_supabase_memory.operations.boards.revise import revise_board

__all__ = ["read_board", "revise_board"]
