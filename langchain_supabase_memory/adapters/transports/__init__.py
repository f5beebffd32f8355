"""Two transports to the same SQL functions: the Data API, and a direct connection. One conformance suite covers both.

- `base`: the transport protocol; `retry`: retries; `breaker`: the circuit breaker.
- `response_shapes`: the shapes of the functions' documents, so that no other response is accepted.
- `http_errors`: maps an HTTP response from the database or a gateway to a document or an error.
- `credentials`: access tokens and claims; a missing user is an error.
- `per_loop`: one async resource per event loop, closed with its loop; `event_loop`: a loop for sync code.
- `pools`: connection pools; `endpoint`: requests to the Data API; `endpoint_info`: where calls go.
- `supabase`: over the official client's `rpc`, with the caller's token on each request.
- `postgres`: over `psycopg` and its pool, able to act as a user inside the call's transaction.
- `embedded`, `embedded_transport`: a private Postgres from a Python package, over a direct connection.
"""
