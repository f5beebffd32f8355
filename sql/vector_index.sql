-- For one owner with more chunks than are compared one by one: an index over the vectors of one width. By the inner
-- product, which is the cosine here; in half precision, as they are stored. recall() knows it by its name.
create index if not exists chunk_embeddings_hnsw_{{width}} on memory.chunk_embeddings
  using hnsw ((embedding::{{vector_schema}}.halfvec({{width}})) {{vector_schema}}.halfvec_ip_ops)
  with (m = 16, ef_construction = 64) where dimensions = {{width}};
