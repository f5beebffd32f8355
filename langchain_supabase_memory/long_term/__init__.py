"""Long-term memory: what is worth keeping when conversations have gone, in a store of your choice.

- `memories`: what a memory is, and what a long-term memory can do.
- `base`: what all of ours have in common.
- `on_store`: over any LangGraph `BaseStore`; ours by default.
- `on_vectors`: over any LangChain `VectorStore`.
- `moving`: important facts move to it from conversations, and go from it when they are forgotten there.
"""
