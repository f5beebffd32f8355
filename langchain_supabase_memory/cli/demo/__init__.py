"""The demo: an agent with a long past, a process that is killed, and right answers all the same.

- `transcript`: the conversation, bundled or the user's own.
- `replay`: a process that stores it turn by turn, until it is done or killed.
- `prompt_view`: the lines of a prompt, and where each is from.
- `model`: the offline stand-in for a chat model, which only quotes its prompt.
- `agent`: a real LangChain agent over the memory.
- `show`: the story, on the terminal.
"""
