"""The demo: an agent with a long history answers correctly although a process was killed.

- `replay`: a process that stores the transcript turn by turn, until it is done or killed.
- `agent`: a real LangChain agent over the memory.
- `show`: the demo's output on the terminal.
"""
