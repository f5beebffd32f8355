   -- The owner and the conversation once more: a node is found by them.
   where m.user_id = p_user_id and m.conversation_id = p_conversation_id
