"""The operations on each noun: one module per SQL file."""
