"""The context pack."""
