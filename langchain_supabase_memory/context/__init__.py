"""The context pack for the next prompt.

- `token_meter`: the size of messages in characters or tokens.
- `summary_part`, `board`, `recall_part`, `recent_messages`: the parts of a pack.
- `truncate`: shorten one message, with a mark that says how to read the original.
- `media`: limit the images and files.
- `decoded_entries`: decode stored messages, and keep what was decoded.
- `fit`: choose the messages of the pack. Pure.
- `pack`: the pack, and how it is rendered.
- `report`: what was sent and why.
- `manifest`: the pack's manifest.
- `load`: the flow that reads, summarizes if it has to, and fits.
- `append_and_load`: store and read in one round trip.
- `coverage`: the flow that reports where every message is.
- `growth`: a picture of prompt sizes over the turns.
- `alternate`: messages with alternating roles.
"""
