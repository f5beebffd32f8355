"""Text analysis without a language model."""
