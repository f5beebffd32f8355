"""The SQL schema: the SQL files, ordered, rendered and applied.

- `script`: the files as one ordered list of parts, pure.
- `partitions`: rewrites a table's file for partitioned tables, pure.
- `citus`: rewrites the functions for Citus, pure.
- `migrate`: applies them over a connection.
- `files`: writes them for `supabase db push`.
"""
