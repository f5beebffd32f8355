"""Rolling out the memory in stages: the stages, which users are in which, and comparisons of old and new context."""
