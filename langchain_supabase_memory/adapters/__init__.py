"""The outside: databases, models, observers."""
