"""The board of a conversation: a summary that grows with it, and items of each kind.

- `kinds`: the kinds of items, in one table.
- `schema`: the JSON schema of a summarizer's answer.
- `parse_answer`: check an answer against the messages.
- `revise`: the flow that brings a board up to the newest message.
- `board`: the board as a value.
- `editing`: changes by a person.
- `html`: the board as a card in a notebook.

This module imports none of them: the database setup only reads `kinds`, and does not need messages.
"""
