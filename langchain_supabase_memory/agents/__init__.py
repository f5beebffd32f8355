"""What a graph is composed from."""
