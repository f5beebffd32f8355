  declare
    v_c       record;
    v_run     timestamptz;
    v_marked  bigint := 0;
    v_seen    bigint := 0;
    v_user    text;
    v_id      uuid;
  begin
    for v_c in
      select c.user_id, c.id, c.priority,
             c.opted_out_at is null and (
             (p_index and (c.next_sequence - 1 > c.indexed_through or c.has_stale))
             or (p_vectors and c.unembedded_from is not null)
             or c.next_sequence - 1 - coalesce(b.through_sequence, -1) >= p_board
             or c.total_characters - c.summarized_characters > p_characters
             or c.total_tokens - c.summarized_tokens > p_tokens
             or c.next_sequence - 1 - c.summarized_through > p_messages
             or c.requested_at is distinct from c.served_at) as is_behind
      from memory.conversations c
      left join memory.conversation_summary_boards b on b.user_id = c.user_id and b.conversation_id = c.id
      where (c.user_id, c.id) > (p_after_user, p_after) and (p_user_id is null or c.user_id = p_user_id)
        and (p_user_id is null or p_after_user <> p_user_id or c.id > p_after)
      order by c.user_id, c.id limit least(p_limit, 1000)
    loop
      v_seen := v_seen + 1;
      v_user := v_c.user_id;
      v_id := v_c.id;
      select w.run_after into v_run from memory_private.work w where w.user_id = v_user and w.conversation_id = v_id;
      if found then
        if v_run < 'infinity' and not exists (select from memory_private.owners o where o.user_id = v_user) then
          insert into memory_private.owners (user_id, turn_at, due_at) values (v_user, v_now, v_run)
          on conflict (user_id) do nothing;
        end if;
      elsif v_c.is_behind then
        perform 1 from memory.conversations c where c.user_id = v_user and c.id = v_id for key share skip locked;
        if found then
          insert into memory_private.work (user_id, conversation_id, priority) values (v_user, v_id, v_c.priority)
          on conflict (user_id, conversation_id) do nothing;
          v_marked := v_marked + found::integer;
        end if;
      end if;
    end loop;
    select v_marked as marked, v_seen as seen, v_user as last_user, v_id as last into v_page;
  end;
