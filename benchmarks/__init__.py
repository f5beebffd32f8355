"""Benchmarks of the memory against the minimum cost of the same work on the same machine. See `__main__`."""
