"""Measure whether recall finds the right messages of a long conversation, without a language model."""
