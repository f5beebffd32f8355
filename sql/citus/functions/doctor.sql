-- Returns how long the oldest work that a worker would claim has waited, over all nodes.
create or replace function memory_private.longest_wait() returns float8
language plpgsql stable security invoker set search_path = ''
as $function$
begin
  return (
    select coalesce(extract(epoch from clock_timestamp() - min(w.since)), 0)::float8
    from memory_private.work w where w.run_after <= clock_timestamp());
end
$function$;

-- Samples the first chunks of one node, with their vectors.
create or replace function memory_private.sample_vectors(p_model text) returns jsonb
language plpgsql stable security invoker set search_path = ''
as $function$
declare
  v_c       record;
  v_width   integer;
  v_others  bigint;
  v_chunks  integer := 0;
  v_lacking integer := 0;
  v_of_others integer := 0;
  v_widths  jsonb := '[]';
begin
  for v_c in
    select c.user_id, c.conversation_id, c.place, c.part from memory.working_memory_chunks c where not c.stale limit 100
  loop
    select max(e.dimensions) filter (where e.model = p_model), count(*) into v_width, v_others
      from memory.chunk_embeddings e
     where e.user_id = v_c.user_id and e.conversation_id = v_c.conversation_id and e.place = v_c.place and e.part = v_c.part;
    v_chunks := v_chunks + 1;
    v_lacking := v_lacking + (v_width is null)::integer;
    v_of_others := v_of_others + (v_width is null and v_others > 0)::integer;
    if v_width is not null and not v_widths @> to_jsonb(v_width) then
      v_widths := v_widths || to_jsonb(v_width);
    end if;
  end loop;
  return jsonb_build_object('chunks', v_chunks, 'lacking', v_lacking, 'of_others', v_of_others, 'widths', v_widths);
end
$function$;
