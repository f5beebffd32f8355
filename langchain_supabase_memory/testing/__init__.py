"""For tests and demos: a model that needs no key and no network, and the conformance suite of LangGraph stores."""

from langchain_supabase_memory.testing.quoting_model import OfflineQuotingModel
from langchain_supabase_memory.testing.store_conformance import STORE_CHECKS, StoreCheck, acheck_store, check_store

__all__ = ["STORE_CHECKS", "OfflineQuotingModel", "StoreCheck", "acheck_store", "check_store"]
