create view memory.current_summaries with (security_invoker = true) as
select c.agent_id, c.thread_id, c.indexed_through, s.*
from memory.conversations c
-- By rank and not by look-ups: Citus finds the node by the owner, and cannot tell the owner of a look-up.
join (
  select distinct on (r.user_id, r.conversation_id) r.* from memory.conversation_summaries r
  where r.level = 0 or r.number = 1
  order by r.user_id, r.conversation_id, r.to_sequence desc, (r.edited_at is not null) desc, r.level desc, r.number desc) s
  on s.user_id = c.user_id and s.conversation_id = c.id;
