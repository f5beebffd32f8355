"""Recall: find the passages of conversations that fit a question.

- `ranges`: the time range of a question.
- `query`: the question as the SQL function takes it.
- `search`: the recall flows.
- `exact_search`: messages that contain given texts exactly.
- `summaries`: vectors of summaries, and recall over them.
- `indexing`: create, list and re-embed chunks.
- `ranking`: merge, rerank and fit rankings.
- `render`: recalled chunks as text for a prompt.
- `chunk_timeline`: recalled chunks as a picture.
"""
