"""Convert LangChain messages to rows and back without loss.

- `sanitizer`: convert any Python value to what JSON and Postgres can hold, and back.
- `codec`: convert a message to its row (payload, role, text, counts, images), and a row to its message.
- `rendering`: the text of a message with any kind of block; `encoded_data` finds and names what is not text.
- `invisible`: invisible characters of a text, for fences and terminals.
"""
