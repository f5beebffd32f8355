"""The base modules."""
