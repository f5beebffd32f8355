"""Models for tests and demos, which need no key and no network."""

from langchain_supabase_memory.testing.quoting_model import OfflineQuotingModel

__all__ = ["OfflineQuotingModel"]
