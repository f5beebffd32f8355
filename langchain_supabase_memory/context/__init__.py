"""The context for the next prompt.

- `meters`: how much a message weighs, in characters or in tokens.
- `head`: what a pack says of everything before its recent messages.
- `clip`: one message made small enough, with a mark that says how to read the original.
- `fit`: which messages stand in the pack. Pure.
- `pack`: the pack, and how it is rendered.
- `report`: what was sent and why.
- `load`: the flow that reads, summarizes if it has to, and fits.
- `cover`: the flow that says where every message is.
"""
