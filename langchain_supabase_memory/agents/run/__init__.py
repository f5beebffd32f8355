"""How the memory takes part in the run of a graph.

- `steps`: what a run does, step by step, written once and driven in both colors.
- `guard`: a step whose failure costs the memory and not the answer.
- `identity`: whose conversation it is.
- `thread`: the graph's messages, and how the store is brought to them.
- `alignment`: messages that come back without ids.
- `load`: the context, and what is due before it.
- `stage`, `staged`: a rollout's stage, and what a call of the model receives at it.
"""
