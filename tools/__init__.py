"""Generators that write files of this repository from others, and check that they are current."""
