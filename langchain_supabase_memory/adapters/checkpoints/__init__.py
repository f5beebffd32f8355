"""LangGraph's own tables of checkpoints, as its `PostgresSaver` creates them: what to keep, pruning, and access.

- `retained`: which checkpoints a thread needs; pure. `tidy`: deletes the others in batches, and revokes access.
"""
