"""Introducing the memory step by step: stages, who is at which, and what the old and the new context come to."""
