"""The doctor: a health report on a memory, each line with the next action. Each module checks one area."""
