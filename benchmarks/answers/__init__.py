"""Measure the answers of any chat model over this package's context packs, with any judge. See `__main__`."""
