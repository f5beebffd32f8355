"""Models and embedders with their own settings."""

from langchain_supabase_memory.adapters.edge_embeddings import EdgeEmbeddings
from langchain_supabase_memory.adapters.embedder import EmbeddingModel
from langchain_supabase_memory.adapters.learned_reranker import LearnedReranker
from langchain_supabase_memory.adapters.local_embeddings import LocalEmbeddings
from langchain_supabase_memory.adapters.multilingual_embeddings import MultilingualEmbeddings
from langchain_supabase_memory.adapters.query_expander import ExpandModel
from langchain_supabase_memory.adapters.reranker import RerankModel
from langchain_supabase_memory.adapters.tone import ToneModel
from langchain_supabase_memory.agents.nodes import SupabaseSummarizer

__all__ = [
    "EdgeEmbeddings",
    "EmbeddingModel",
    "ExpandModel",
    "LearnedReranker",
    "LocalEmbeddings",
    "MultilingualEmbeddings",
    "RerankModel",
    "SupabaseSummarizer",
    "ToneModel",
]
