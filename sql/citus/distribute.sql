-- Distributes the tables of owners over the nodes of a Citus cluster, with all rows of one owner on one node. Tables
-- without an owner stay on the coordinator, and so do those about spaces and their members, which are asked across owners,
-- and profiles, topics and usage, whose triggers run where their functions are.
do $citus$
declare
  -- Referenced tables come first.
  v_tables constant text[] := array[
    'memory.conversations', 'memory.conversation_messages', 'memory.message_blocks', 'memory.gone_messages',
    'memory.superseded_messages', 'memory.conversation_summaries', 'memory.summary_embeddings',
    'memory.working_memory_chunks', 'memory.chunk_postings', 'memory.chunk_embeddings', 'memory.chunk_ratings',
    'memory.conversation_summary_boards', 'memory.conversation_board_items', 'memory.conversation_board_changes',
    'memory.store_items', 'memory.store_vectors', 'memory.promotions', 'memory.opt_outs', 'memory.opt_out_undos',
    'memory.control_changes',
    'memory.context_manifests', 'memory_private.work', 'memory_private.owners', 'memory_private.drafts'];
  v_table text;
begin
  -- A table that stays cannot refer to one that is distributed; memory_forget deletes its rows by name.
  alter table memory.contributions drop constraint if exists contributions_user_id_conversation_id_fkey;
  alter table memory.profile_evidence drop constraint if exists profile_evidence_user_id_conversation_id_fkey;
  alter table memory.topic_stretches drop constraint if exists topic_stretches_user_id_conversation_id_fkey;
  alter table memory.indexed_stretches drop constraint if exists indexed_stretches_user_id_conversation_id_fkey;
  alter table memory.usage_cursors drop constraint if exists usage_cursors_user_id_conversation_id_fkey;
  alter table memory.reads drop constraint if exists reads_user_id_conversation_id_fkey;
  foreach v_table in array v_tables loop
    if not exists (select from pg_catalog.pg_dist_partition p where p.logicalrelid = v_table::regclass) then
      perform create_distributed_table(
        v_table, 'user_id', colocate_with => case when v_table = v_tables[1] then 'default' else v_tables[1] end);
    end if;
  end loop;
end
$citus$;
