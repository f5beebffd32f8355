"""The outside: doors, models, observers."""
