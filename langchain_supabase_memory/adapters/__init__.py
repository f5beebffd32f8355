"""Adapters to the outside: databases, models, observability."""
