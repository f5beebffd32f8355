-- One at a time, each on the node of its owner.
create or replace function public.memory_embed_summaries(p_model text, p_vectors json) returns jsonb
language plpgsql volatile security invoker set search_path = ''
as $function$
declare
  v_g    record;
  v_s    memory.conversation_summaries;
  v_made jsonb := '[]';
begin
  perform memory_private.check_limits(p_vectors);
  for v_g in
    select i.*
    from json_to_recordset(p_vectors) as i (
      user_id text, conversation_id uuid, level integer, number integer, id uuid, embedding json)
    order by i.user_id, i.conversation_id
  loop
    select s.* into v_s from memory.conversation_summaries s
     where s.user_id = v_g.user_id and s.conversation_id = v_g.conversation_id and s.level = coalesce(v_g.level, 0)
       and s.number = v_g.number and s.id = v_g.id
       for key share;
    continue when not found or not exists (
      select from memory.current_summaries n
      where n.user_id = v_g.user_id and n.conversation_id = v_g.conversation_id and n.id = v_s.id);
    insert into memory.summary_embeddings (user_id, conversation_id, level, number, model, dimensions, embedding)
    values (v_s.user_id, v_s.conversation_id, v_s.level, v_s.number, p_model, json_array_length(v_g.embedding),
            v_g.embedding::text::{{vector_schema}}.halfvec)
    on conflict (user_id, conversation_id, level, number, model) do update
      set dimensions = excluded.dimensions, embedding = excluded.embedding;
    delete from memory.summary_embeddings e
     where e.user_id = v_s.user_id and e.conversation_id = v_s.conversation_id
       and (e.level, e.number) <> (v_s.level, v_s.number);
    v_made := v_made || jsonb_build_array(jsonb_build_array(v_s.user_id, v_s.conversation_id));
  end loop;
  return v_made;
end
$function$;
