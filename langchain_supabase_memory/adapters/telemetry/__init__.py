"""What is seen from outside: numbers, spans and log lines, with ids and counts and never a word of what was said.

`watch` drives a flow and observes its steps in one place; `metrics` counts, `tracing` times, `logs` writes JSON lines,
`server` serves them. The packages behind the first two are imported when they are first used.
"""
