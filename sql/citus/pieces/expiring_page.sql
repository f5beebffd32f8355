  -- One statement for all nodes, because looking at each conversation takes round trips.
  execute $sql$
    select array_agg(c.user_id order by c.user_id, c.id), array_agg(c.id order by c.user_id, c.id)
    from memory.conversations c
    where ($1 is null or c.user_id = $1) and c.id = any ($2) and (c.user_id, c.id) >= ($3, $4) and (c.user_id, c.id) <= ($5, $6)
      and (c.private or starts_with(c.user_id, 'space:') or c.message_count > $7
           or c.has_superseded and ($7 is not null or $8 is not null)
           or exists (select from memory.working_memory_chunks k
                      where ($1 is null or k.user_id = $1) and k.user_id = c.user_id and k.conversation_id = c.id and k.expires_at <= $10)
           or $8 is not null and exists (
                select from memory.conversation_messages m
                where ($1 is null or m.user_id = $1) and m.user_id = c.user_id and m.conversation_id = c.id and m.created_at < $8)
           or $9 is not null and (
                exists (select from memory.conversation_summaries s
                        where ($1 is null or s.user_id = $1) and s.user_id = c.user_id and s.conversation_id = c.id and s.created_at < $9)
                or exists (select from memory.conversation_summary_boards b
                           where ($1 is null or b.user_id = $1) and b.user_id = c.user_id and b.conversation_id = c.id and b.updated_at < $9))) $sql$
    into users, ids
    using /* 1 */ p_user_id, /* 2 */ ids, /* 3, 4: the page's begin */ users[1], ids[1], /* 5, 6: and end */ last_user, last,
          /* 7 */ v_count, /* 8 */ v_age, /* 9 */ v_old, /* 10 */ v_now;
