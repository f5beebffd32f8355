"""Two ways to the same SQL functions: the Data API, and a direct connection. One conformance suite holds both.

- `base`: what a transport is, and how a call is repeated.
- `answers`: the shapes of the functions' documents; what is no answer is never taken for one.
- `responses`: what an HTTP response says, whoever gave it.
- `credentials`: who is signed in; nobody is an error.
- `loops`: one async resource per event loop, closed with its loop; `running`: a loop, for code that has none.
- `supabase`: over the official client's `rpc`, with the caller's token on each request.
- `postgres`: over `psycopg` and its pool, able to act as a user inside the call's transaction.
- `embedded`: a private Postgres from a Python package, for the second way.
"""
