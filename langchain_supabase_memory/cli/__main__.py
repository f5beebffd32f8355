"""`python -m langchain_supabase_memory.cli`, which is the same as `supabase-memory`."""

from __future__ import annotations

from langchain_supabase_memory.cli import main

if __name__ == "__main__":
    main()
