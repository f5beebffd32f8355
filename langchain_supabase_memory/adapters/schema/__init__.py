"""The database's side of this package: the SQL files, put in order, rendered and applied.

- `script`: the files as one ordered list of parts, pure.
- `partitions`: a table's file for owners that are spread over partitions, pure.
- `migrate`: applies them over a connection.
- `files`: writes them for `supabase db push`.
"""
