"""LangChain messages to rows and back, exactly.

- `sanitiser`: any Python value to what JSON and Postgres can hold, and back.
- `codec`: a message to its row (payload, role, text, counts, images), and a row to its message.
"""
