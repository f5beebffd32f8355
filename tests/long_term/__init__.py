"""Long-term memory."""
