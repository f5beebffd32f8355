"""The commands, one module for each, named like it. Each is a few lines over the package's own functions."""
