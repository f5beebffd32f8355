"""From messages to chunks, without a database and without a model.

- `units`: messages that belong together, as the texts that are ranked and returned.
- `parts`: long texts cut where a sentence ends.
- `kinds`: what a text is, how much it matters, and whether it completes something.
- `episodes`: where one episode of talk ends and the next begins.
"""
