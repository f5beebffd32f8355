"""Turn messages into chunks, without a database and without a model.

- `units`: groups of messages that belong together, as the texts that are ranked and returned.
- `parts`: long texts, split at sentence ends.
- `kinds`: the kind of a text, its importance, and whether it completes something.
- `episodes`: the boundaries between episodes.
"""
