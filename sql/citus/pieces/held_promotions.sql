    -- In the order in which they are stored: each takes a round trip, and two calls at once could deadlock.
    perform 1 from memory.promotions p
    join json_to_recordset(p_facts) as i (conversation_id uuid, source_id uuid)
      on i.conversation_id = p.conversation_id and i.source_id = p.source_id
     where p.user_id = v_user and p.target = p_target
     order by p.conversation_id, p.source_id
       for no key update of p;
