"""What LangGraph's server serves: an agent with a memory for each user, and a store."""

import os

from langchain.agents import create_agent

from langchain_supabase_memory import SupabaseMemory, SupabaseMemoryMiddleware, SupabaseStore
from langchain_supabase_memory.testing import OfflineQuotingModel

# The server sees everybody's rows. Whose a run is comes from auth.py, and from nothing that a client sends; "server"
# owns the rows of the store.
memory = SupabaseMemory.from_conn_string(os.environ["SUPABASE_DB_URL"])

model = "openai:gpt-5.5" if "OPENAI_API_KEY" in os.environ else OfflineQuotingModel()  # which can only quote
agent = create_agent(model, middleware=[SupabaseMemoryMiddleware(memory)])  # the server has a checkpointer
store = SupabaseStore(memory.for_user("server"))
