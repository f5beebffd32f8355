"""Observability: metrics and log lines with ids and counts, never content.

`metrics` counts, `logs` writes JSON lines, `alerts` counts and logs problems, `server` serves the metrics. The spans
come from `memory.instrumentation`, which observes every flow. Optional packages are imported on first use.
"""
