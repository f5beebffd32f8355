"""Whether the right messages of a long conversation come back, measured without a language model."""
