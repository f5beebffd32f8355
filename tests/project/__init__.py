"""The documentation, the notebooks and the package as a whole."""
