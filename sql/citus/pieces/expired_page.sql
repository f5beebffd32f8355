  -- First the page; then one statement for all nodes that finds the conversations which may have something expired,
  -- because checking each takes a dozen round trips. It may find too many, but misses none: memory_private.find_expired
  -- decides.
  for v_c in execute $sql$
    select c.user_id, c.id from memory.conversations c
    where ($1 is null or c.user_id = $1) and ($2 is null or c.agent_id = $2) and ($3 is null or c.thread_id = $3)
      and ($5 is null or (c.user_id, c.id) > ($4, $5))
    order by c.user_id, c.id limit $6 $sql$
    using /* 1 */ p_user_id, /* 2 */ p_agent_id, /* 3 */ p_thread_id, /* 4, 5: the last page's end */ p_after_user, p_after,
          /* 6 */ v_most
  loop
    v_seen := v_seen + 1;
    v_after := jsonb_build_object('user', v_c.user_id, 'id', v_c.id);
  end loop;
  for v_c in execute $sql$
    select c.user_id, c.id, c.private from memory.conversations c
    where ($1 is null or c.user_id = $1) and ($2 is null or c.agent_id = $2) and ($3 is null or c.thread_id = $3)
      and ($5 is null or (c.user_id, c.id) > ($4, $5)) and (c.user_id, c.id) <= ($6, $7)
      and ($8 and c.has_superseded or c.message_count > $9 or c.private and c.message_count > 0
           or exists (select from memory.working_memory_chunks k
                      where ($1 is null or k.user_id = $1) and k.user_id = c.user_id and k.conversation_id = c.id and k.expires_at <= $12)
           or exists (select from memory.context_manifests x
                      where ($1 is null or x.user_id = $1) and x.user_id = c.user_id and x.conversation_id = c.id and x.expires_at < $12)
           or $10 is not null and exists (
                select from memory.conversation_messages m
                where ($1 is null or m.user_id = $1) and m.user_id = c.user_id and m.conversation_id = c.id and m.created_at < $10)
           or $11 is not null and (
                exists (select from memory.conversation_summaries s
                        where ($1 is null or s.user_id = $1) and s.user_id = c.user_id and s.conversation_id = c.id and s.created_at < $11)
                or exists (select from memory.conversation_summary_boards b
                           where ($1 is null or b.user_id = $1) and b.user_id = c.user_id and b.conversation_id = c.id and b.updated_at < $11)))
    order by c.user_id, c.id $sql$
    using /* 1 */ p_user_id, /* 2 */ p_agent_id, /* 3 */ p_thread_id, /* 4, 5: the last page's end */ p_after_user, p_after,
          /* 6, 7: and this one's */ v_after ->> 'user', (v_after ->> 'id')::uuid,
          /* 8 */ p_retention is not null,
          /* 9: of a turn two messages are kept at least */
          least(2 * (p_retention ->> 'turns')::bigint, (p_retention ->> 'messages')::bigint),
          /* 10 */ clock_timestamp() - (p_retention ->> 'age')::float8 * interval '1 second',
          /* 11 */ clock_timestamp() - (p_retention ->> 'summary_age')::float8 * interval '1 second',
          /* 12 */ clock_timestamp()
