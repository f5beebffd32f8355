"""A server of the Model Context Protocol: a person's own past conversations, for whatever client they use.

Inside this package `mcp` in an import is the official SDK; this room is always named in full.

- `served`: whose memory a request is about, known from the transport and from nothing that a client writes.
- `asking`: how a tool asks the memory; `answers`: what it gives, and how it fails.
- `tools`: the tools in a table; `reading`, `writing`, `forgetting`: what they do; `consent`: what a person is asked.
- `resources`, `prompts`: what a person picks.
- `server`: all of it as a server; `stdio`: for one person; `http`, `tokens`, `away`, `sessions`: for whoever signs in.
"""
