"""The memory's part in a graph run.

- `fail_open`: error handling that loses the memory and keeps the answer.
- `identity`: the owner of the run's conversation.
- `graph_state`: the graph's messages, and syncing them to the store.
- `state_owners`: the owners of checkpointed states.
- `checkpoints`: earlier states of a graph, read from its checkpoints.
- `alignment`: matching of messages that return without ids.
- `task_ids`: stable ids for messages that LangGraph creates again.
- `load`, `pack_cache`: the context pack, and due work before it.
- `partial_answers`: answers that were interrupted while streaming.
- `stage`, `rollout_prompt`: a rollout's stage, and the prompt that the model receives at that stage.
"""
