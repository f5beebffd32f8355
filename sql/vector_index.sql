-- An index over vectors of one width, for an owner with more chunks than are compared one by one. It orders by the
-- inner product, which is the cosine here, in half precision as stored. recall() finds it by its name.
create index if not exists chunk_embeddings_hnsw_{{width}} on memory.chunk_embeddings
  using hnsw ((embedding::{{vector_schema}}.halfvec({{width}})) {{vector_schema}}.halfvec_ip_ops)
  with (m = 16, ef_construction = 64) where dimensions = {{width}};
