"""LangChain messages to rows and back, exactly.

- `sanitizer`: any Python value to what JSON and Postgres can hold, and back.
- `codec`: a message to its row (payload, role, text, counts, images), and a row to its message.
- `rendering`: the words of a message, of whatever kind its blocks are; `opaque` finds and names what is no words.
- `invisible`: what is not seen of a text, for fences and terminals.
"""
