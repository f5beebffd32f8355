  -- One at a time, each on the node of its owner: rows shared between statements would be sent to every node.
  declare
    v_i         record;
    v_known     uuid;
    v_memory    uuid;
    v_withdrawn boolean;
    v_all       json[] := '{}';
  begin
    for v_i in
      select i.*, array(select json_array_elements_text(i.message_ids)) as ids
      from json_to_recordset(p_facts) as i (
        conversation_id uuid, source_id uuid, text_id uuid, memory_id uuid, repeats boolean, message_ids json,
        edited_at timestamptz, from_board boolean)
      order by i.conversation_id, i.source_id
    loop
      select p.memory_id into v_known from memory.promotions p
       where p.user_id = v_user and p.target = p_target and p.text_id = v_i.text_id and p.moved
       order by p.memory_id limit 1;
      v_withdrawn := exists (select from memory.opt_outs o where o.user_id = v_user)
        and not exists (
          select from memory.working_memory_chunks k
          where k.user_id = v_user and k.conversation_id = v_i.conversation_id and k.id = v_i.source_id)
        and not exists (
          select from memory.conversation_board_items i
          where i.user_id = v_user and i.conversation_id = v_i.conversation_id and i.id = v_i.source_id);
      insert into memory.promotions as p (
        user_id, target, conversation_id, source_id, text_id, memory_id, message_ids, edited_at, repeats, from_board,
        withdrawn)
      values (
        v_user, p_target, v_i.conversation_id, v_i.source_id, v_i.text_id, coalesce(v_known, v_i.memory_id), v_i.ids,
        v_i.edited_at, v_known is not null or v_i.repeats, coalesce(v_i.from_board, false), v_withdrawn)
      on conflict (user_id, target, conversation_id, source_id) do update
        set edited_at = excluded.edited_at, memory_id = excluded.memory_id, repeats = excluded.repeats,
            withdrawn = excluded.withdrawn
      returning p.memory_id into v_memory;
      v_all := v_all || json_build_object('source_id', v_i.source_id, 'memory_id', v_memory, 'known', v_known is not null);
    end loop;
    v_rows := array_to_json(v_all);
  end;
