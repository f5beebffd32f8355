-- Of two migrations at once the second waits here until the first has committed.
select pg_advisory_xact_lock(hashtextextended('langchain-supabase-memory', 0));
