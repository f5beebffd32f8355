"""The operations on each noun."""
