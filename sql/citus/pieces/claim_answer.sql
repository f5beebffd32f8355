  declare
    v_w      memory_private.work;
    v_c      memory.conversations;
    v_waits  text[];
    v_drafts jsonb;
  begin
    v_rows := '[]';
    for v_n in 1..cardinality(v_ids) loop
      select w.* into v_w from memory_private.work w where w.user_id = v_users[v_n] and w.conversation_id = v_ids[v_n];
      select c.* into v_c from memory.conversations c where c.user_id = v_users[v_n] and c.id = v_ids[v_n];
      continue when v_w.user_id is null or v_c.user_id is null;
      select jsonb_object_agg(d.digest, d.answer) into v_drafts from memory_private.drafts d
       where d.user_id = v_users[v_n] and d.conversation_id = v_ids[v_n];
      v_waits := memory_private.backing_off_steps(v_w.paused);
      v_rows := v_rows || jsonb_build_array(jsonb_build_object(
        'user_id', v_w.user_id, 'conversation_id', v_w.conversation_id, 'thread_id', v_c.thread_id,
        'agent_id', v_c.agent_id, 'token', v_w.lease_token, 'since', v_w.since,
        'attempts', v_w.attempts + memory_private.count_failures(v_w.paused, v_waits),
        'paused', v_waits,
        'waited', extract(epoch from clock_timestamp() - v_w.since),
        'position', jsonb_build_array(v_c.next_sequence, v_c.revision, v_c.requested_at, v_c.expired_through),
        'requested', v_c.requested_at is distinct from v_c.served_at,
        'drafts', v_drafts));
    end loop;
  end;
