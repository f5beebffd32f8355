"""The board of a conversation: its living summary, with facts, entities, topics, action items and questions.

- `kinds`: the kinds of items, in one table.
- `answer`: what a writer answers, as a schema.
- `reading`: an answer checked against what was said.
- `revise`: the flow that brings a board up to the newest message.
- `board`: the board as a value.
- `editing`: what a person changes of it.
- `card`: the board as a card in a notebook.

It imports none of them: what sets a database up reads `kinds`, and needs no messages.
"""
