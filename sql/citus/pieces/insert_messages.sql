    -- One at a time: an insert from a query would ask every node, also one that is down, and count all rows instead of
    -- the new ones.
    declare
      v_m     record;
      v_place bigint := p_first;
      v_said  timestamptz;
    begin
      v_fresh := 0;
      for v_m in
        select i.*
        from rows from (json_to_recordset(v_messages) as (
               id text, role text, text text, characters integer, tokens integer,
               created_at timestamptz, metadata jsonb, images jsonb, payload json)) with ordinality
             as i (id, role, text, characters, tokens, created_at, metadata, images, payload, position)
        order by i.position
      loop
        v_said := coalesce(v_m.created_at, clock_timestamp());
        insert into memory.conversation_messages (
          user_id, conversation_id, sequence, message_id, role, text, characters, tokens, created_at, metadata,
          images, payload, author_id)
        values (
          p_user_id, p_conversation_id, v_place, v_m.id, v_m.role, v_m.text, v_m.characters, v_m.tokens, v_said,
          v_m.metadata, v_m.images, v_m.payload, p_author)
        on conflict (user_id, conversation_id, message_id) do nothing;
        v_place := v_place + 1;
        v_fresh := v_fresh + found::integer;
      end loop;
    end;
