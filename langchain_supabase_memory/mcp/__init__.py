"""A Model Context Protocol server: a person's own past conversations, for any client they use.

In this package an import of `mcp` is the official SDK; this subpackage is always imported by its full name.

- `request_memory`: whose memory a request is about, taken only from the transport, never from the client's arguments.
- `run_tools`: runs tools on the memory; `answers`: their results and errors; `conversations`: lists.
- `tools`: the table of tools; `read_tools`, `write_tools`, `forget_tool`, `share_tools`: the tools; `consent`: the
  question to a person.
- `spaces`: the memory of a space, for a request of one of its members.
- `resources`, `prompts`: what a person picks in a client.
- `server`: all of it as a server; `schemas`: compact JSON schemas; `stdio`: serves one person.
- `http_app`, `http_server`, `tokens`, `sessions`, `unavailable_middleware`: serve signed-in users over HTTP.
"""
