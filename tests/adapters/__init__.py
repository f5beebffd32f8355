"""The outside: transports, models, observers."""
