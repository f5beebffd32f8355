"""The main job, to be watched: an agent with a long past, a process that is killed, and answers all the same.

- `transcript`: what is said, bundled or the user's own.
- `replay`: a process that stores it turn by turn, until it is done or killed.
- `seen`: what a model sees in its prompt, and where each line is from.
- `model`: the offline stand-in for a chat model, which can only quote that.
- `agent`: a real LangChain agent over the memory, which recalls for it.
- `show`: the story, on the terminal.
"""
