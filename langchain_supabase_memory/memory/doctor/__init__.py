"""The doctor: a health report on a memory, with a next action per finding. Each module checks one area."""
