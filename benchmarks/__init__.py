"""How fast the memory is, next to the least that the same work can cost on the same machine. See `__main__`."""
