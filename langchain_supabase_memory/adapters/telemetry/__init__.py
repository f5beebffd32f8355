"""What is seen from outside: numbers and log lines, with ids and counts and never a word of what was said.

`metrics` counts, `logs` writes JSON lines, `server` serves the numbers. The spans are made by `memory.instrumentation`,
which observes every flow. Optional packages are imported when they are first used.
"""
