  -- One look-up each: a node cannot join its rows with those of another table, nor call a function that reads tables.
  declare
    v_k    memory.working_memory_chunks;
    v_of   memory.conversations;
    v_rank integer;
    v_all  json[] := '{}';
    v_before json;
    v_after  json;
  begin
    foreach v_rank in array v_chosen loop
      select k.* into v_k from memory.working_memory_chunks k
       where k.user_id = p_user_id and k.conversation_id = v_conversation[v_rank] and k.place = v_place[v_rank]
         and k.part = v_part[v_rank];
      select c.* into v_of from memory.conversations c where c.user_id = p_user_id and c.id = v_k.conversation_id;
      v_before := null;
      v_after := null;
      if p_ask.has_context then
        select json_agg(memory_private.chunk_json(n, v_of.thread_id, v_of.agent_id) order by n.place, n.part)
                 filter (where (n.place, n.part) < (v_k.place, v_k.part)),
               json_agg(memory_private.chunk_json(n, v_of.thread_id, v_of.agent_id) order by n.place, n.part)
                 filter (where (n.place, n.part) > (v_k.place, v_k.part))
          into v_before, v_after
          from memory_private.surrounding_chunks(
            p_user_id, v_k.conversation_id, v_k.place, v_k.part, p_ask.neighbors, p_ask.whole,
            case when v_k.conversation_id = p_ask.conversation then p_ask.expired end) n
         where p_ask.pool > 0 or n.id <> all (v_ids) and v_by[array_position(v_taken, n.id)] = v_rank;
      end if;
      v_all := v_all || json_build_object(
        'score', v_score[v_rank], 'similarity', v_similarity[v_rank], 'words', v_word[v_rank],
        'score_parts', json_strip_nulls(json_build_object(
          'words', nullif(v_parts[v_rank][1], 0), 'meaning', nullif(v_parts[v_rank][2], 0),
          'around', nullif(v_parts[v_rank][3], 0), 'speaker', nullif(v_parts[v_rank][4], 0),
          'date', nullif(v_parts[v_rank][5], 0), 'kind', nullif(v_parts[v_rank][6], 0),
          'question', nullif(v_parts[v_rank][7], 0), 'importance', nullif(v_parts[v_rank][8], 0),
          'recency', nullif(v_parts[v_rank][9], 0), 'beside', nullif(v_parts[v_rank][10], 0),
          'reply', nullif(v_parts[v_rank][11], 0))),
        'chunk', memory_private.chunk_json(v_k, v_of.thread_id, v_of.agent_id), 'before', v_before, 'after', v_after);
    end loop;
    v_found := to_json(v_all);
  end;
