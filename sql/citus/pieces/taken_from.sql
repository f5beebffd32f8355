   -- Citus finds the node by the owner and the conversation.
   where m.user_id = p_user_id and m.conversation_id = p_conversation_id
