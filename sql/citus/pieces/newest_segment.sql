      -- By rank and not by a look-up, of which Citus cannot tell the owner.
      left join (
        select distinct on (n.user_id, n.conversation_id) n.user_id, n.conversation_id, n.tokens, n.quality
        from memory.conversation_summaries n
        where n.level = 0
        order by n.user_id, n.conversation_id, n.number desc) g on g.user_id = c.user_id and g.conversation_id = c.id
