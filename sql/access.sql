-- Every grant and every policy, on one page. Replaced whole at every upgrade.
-- To open a new table or verb: add its name to one of the lists.
do $access$
declare
  -- Tables of users: each row belongs to user_id, and is theirs alone.
  v_owned  constant text[] := array[
    'conversations', 'conversation_messages', 'message_blocks', 'gone_messages', 'superseded_messages',
    'conversation_summaries', 'summary_embeddings',
    'working_memory_chunks', 'chunk_postings', 'chunk_embeddings', 'chunk_ratings',
    'conversation_summary_boards', 'conversation_board_items', 'conversation_board_changes',
    'store_items', 'store_vectors', 'promotions',
    'opt_outs', 'opt_out_undos', 'control_changes', 'context_manifests'];
  -- Tables of the migrations: for the role that migrates, and nobody else.
  v_ledger constant text[] := array['migrations', 'installation'];
  -- What workers share: for servers alone; a user may see the work on conversations of their own.
  v_work   constant text[] := array['work', 'owners', 'drafts', 'chores'];

  -- What a signed-in user may call, and a server for any of them.
  v_verbs  constant text[] := array[
    -- Conversations: store, read, find and count messages; list them, set a title; forget them; set aside those that cannot be read.
    'memory_append', 'memory_read', 'memory_reinstate', 'memory_find', 'memory_count', 'memory_conversations', 'memory_update',
    'memory_forget', 'memory_forget_message', 'memory_forget_expired', 'memory_set_aside', 'memory_unreadable',
    -- Turns, what the next prompt receives, and what earlier ones did.
    'memory_turns', 'memory_context', 'memory_append_context', 'memory_manifests',
    -- Summaries: which conversations are due, what to summarize, and what came of it; read, correct and find them.
    'memory_due', 'memory_pending', 'memory_commit_summary', 'memory_commit_parent', 'memory_describe_summary',
    'memory_fail_summary', 'memory_summaries', 'memory_coverage', 'memory_edit_summary',
    'memory_unembedded_summaries', 'memory_embed_summaries', 'memory_recall_summaries',
    -- Chunks: which conversations are due, what to index, and what came of it; find, list and rate them.
    'memory_index_due', 'memory_pending_chunks', 'memory_commit_chunks', 'memory_fail_index', 'memory_reembed',
    'memory_recall', 'memory_chunks', 'memory_rate_chunk',
    -- Boards: what to revise one by, and what came of it; read and edit it.
    'memory_pending_board', 'memory_commit_board', 'memory_board', 'memory_edit_board',
    -- The store, and what moves from conversations to long-term memory.
    'memory_store', 'memory_store_sweep', 'memory_store_reindex',
    'memory_important', 'memory_promote', 'memory_withdrawn',
    -- Controls: what is not to be remembered, and who changed what.
    'memory_opt_out', 'memory_opt_in', 'memory_opt_outs', 'memory_control_changes',
    -- Transfer: conversations, and what people have set of them, taken along and put back.
    'memory_edits', 'memory_restore', 'memory_export', 'memory_import',
    -- Work: ask for a summary now, and see how far it is.
    'memory_request', 'memory_status',
    -- Rollout: which context one receives, and what the old and the new one came to.
    'memory_rollout', 'memory_compare', 'memory_comparisons', 'memory_comparison_report',
    -- The database: what is installed, and what one call may bring.
    'memory_schema', 'memory_limits'];

  -- What only workers and operators call, with a server's key.
  v_worker constant text[] := array[
    -- A piece of work: take it, keep it, end it.
    'memory_worker_claim', 'memory_worker_heartbeat', 'memory_worker_keep_draft', 'memory_worker_finish',
    'memory_worker_release',
    -- What is done from time to time for all conversations.
    'memory_worker_chore', 'memory_worker_rederive', 'memory_worker_idle', 'memory_worker_archive',
    -- Operators: look at the queue and at the database, try again what was given up, set the stage of an agent.
    'memory_worker_queue', 'memory_worker_doctor', 'memory_worker_revive', 'memory_worker_set_rollout',
    'memory_worker_rollouts'];

  -- The owner's comparison. In a select of its own, with the arrow inside: so it runs once per statement, and not once
  -- per row; the select within it is what Supabase's advisor looks for. Text, so that a third-party identity works too.
  -- memory_private.owner() asks the same of the token.
  v_is_own constant text := $$user_id = (select (select auth.jwt()) ->> 'sub')$$;
  v_name   text;
  v_policy record;
begin
  for v_policy in select schemaname, tablename, policyname from pg_catalog.pg_policies
                  where schemaname in ('memory', 'memory_private')
  loop
    execute format('drop policy %I on %I.%I', v_policy.policyname, v_policy.schemaname, v_policy.tablename);
  end loop;

  -- Nothing is inherited from the project's default privileges, old or new: first take all, then give.
  revoke all on schema memory, memory_private from public, anon, authenticated, service_role;
  revoke all on all tables in schema memory, memory_private from public, anon, authenticated, service_role;
  revoke all on all functions in schema memory_private from public, anon, authenticated, service_role;
  grant usage on schema memory, memory_private to authenticated, service_role;
  grant execute on function
    memory_private.owner(text), memory_private.author_kind(text), memory_private.allowed(), memory_private.admit(json, boolean), memory_private.is_flat(text),
    memory_private.is_list(text[]), memory_private.weighed_metadata(jsonb),
    memory_private.one_line(text), memory_private.beginning(text, integer),
    memory_private.listed(memory.conversations, json, boolean), memory_private.cursor(timestamptz, uuid),
    memory_private.fill(json), memory_private.filled(bigint, json), memory_private.completed(bigint, text, text, json),
    memory_private.calls(bigint, json, json), memory_private.arguments(text), memory_private.beside(jsonb, text),
    memory_private.said(jsonb, jsonb), memory_private.without_thought(text), memory_private.image(jsonb), memory_private.file_name(text),
    memory_private.leaves(jsonb), memory_private.is_sealed(text, text), memory_private.tokens(text),
    memory_private.expect(bigint, jsonb, jsonb, text), memory_private.refuse(bigint, text, text),
    memory_private.weighed(json, text, jsonb, jsonb, integer, integer), memory_private.uncover(text, uuid, bigint, text),
    memory_private.tail(text, uuid, bigint, bigint, integer, bigint, int8multirange),
    memory_private.retain(text, uuid, json, boolean), memory_private.note_gone(text, uuid, text[]),
    memory_private.expired(memory.conversations, json),
    memory_private.outlived(text, uuid, json), memory_private.aged(text, uuid, timestamptz),
    memory_private.weight(text, uuid, int8multirange), memory_private.tally(text, uuid, int8multirange, integer, bigint),
    memory_private.turns_in(text, uuid, bigint, bigint), memory_private.since(text, uuid, bigint, bigint),
    memory_private.turns_before(text, uuid, bigint, bigint, boolean), memory_private.question(text, uuid, bigint, bigint),
    memory_private.positioned(memory.conversations, bigint, int8multirange, boolean, boolean),
    memory_private.pairs(int8multirange),
    memory_private.place(text, uuid, text),
    memory_private.move(text, uuid, bigint[], boolean), memory_private.take_out(text, uuid, bigint, bigint),
    memory_private.owner_digest(text), memory_private.database_id(), memory_private.forks(text, uuid),
    memory_private.left_behind(text, uuid, bigint),
    memory_private.follow(text, text, text, json), memory_private.followed(text, uuid, bigint, json, jsonb),
    memory_private.expire_superseded(text, uuid, timestamptz, bigint),
    memory_private.reposition(text, uuid), memory_private.folded(text),
    memory_private.letters(text, boolean), memory_private.holds(text, text, json, text[], boolean),
    memory_private.mentions(text, text[], text),
    memory_private.unmentioned(text, text[], text), memory_private.sentences(text),
    memory_private.unsaid(text, text[]), memory_private.telling(text[]), memory_private.deleted(text, uuid), memory_private.topics(text, uuid),
    memory_private.told_topics(text, uuid), memory_private.hold_opt_outs(text, boolean),
    memory_private.underive(text, uuid), memory_private.drop_topic(text, uuid, text),
    memory_private.derived(text, uuid), memory_private.keep_undo(text, uuid, uuid, jsonb),
    memory_private.undo_opt_out(text, uuid),
    memory_private.close_holes(text, uuid, bigint, bigint[], integer[], integer[]), memory_private.retry_at(integer, float8),
    memory_private.config(text), memory_private.lexemes(text, text), memory_private.language(text),
    memory_private.summary_words(text, text),
    memory_private.indexed(text, text, timestamptz),
    memory_private.post(text, uuid, text[], bigint[], integer[], integer[]),
    memory_private.unpost(text, text, uuid, bigint, bigint[]), memory_private.drop_chunks(text, uuid, bigint[]), memory_private.expire_chunks(text, uuid),
    memory_private.unchunk(text, uuid, bigint, bigint, boolean), memory_private.unrate(text, uuid, bigint[]),
    memory_private.unindex(text, uuid, bigint),
    memory_private.check_model(text, uuid[], text, integer), memory_private.recall(text, uuid[], json),
    memory_private.recall_one(text, uuid[], json, json),
    memory_private.meant(text, uuid[], text[], text[]), memory_private.differs(text, text, integer),
    memory_private.together(text, uuid, bigint, integer, integer, boolean, int8multirange),
    memory_private.shown(memory.working_memory_chunks, memory.conversations),
    memory_private.near(boolean, integer), memory_private.wanted(), memory_private.pool(boolean),
    memory_private.ranking(boolean), memory_private.rank_all(
      text, uuid[], text[], {{vector_schema}}.halfvec, text, bigint, timestamptz, timestamptz, text[], float8, uuid,
      int8multirange, integer, text[], text[], json, text, json, boolean, float8, integer, boolean, uuid[], bigint[], integer),
    memory_private.rank_near(
      text, uuid[], text[], {{vector_schema}}.halfvec, text, bigint, timestamptz, timestamptz, text[], float8, uuid,
      int8multirange, integer, text[], text[], json, text, json, boolean, float8, integer, boolean, uuid[], bigint[], integer),
    memory_private.scope(text, text, uuid, text),
    memory_private.item_digest(text), memory_private.item_states(text), memory_private.is_name(text), memory_private.unboard(text, uuid, bigint, text),
    memory_private.unboard_items(text, uuid, bigint, text),
    memory_private.board_items(text, uuid, boolean, integer),
    memory_private.named_time(text), memory_private.state(timestamptz, timestamptz), memory_private.failures(jsonb, text[]),
    memory_private.in_share(text, float8),
    memory_private.is_recorded(json, jsonb, bigint, bigint, timestamptz, timestamptz), memory_private.compared(jsonb),
    memory_private.keep_manifest(text, uuid, bigint, bigint, json), memory_private.expire_manifests(text, uuid, integer),
    memory_private.unmanifest(text, uuid, bigint), memory_private.named(json), memory_private.named_items(json),
    memory_private.edited_items(text, uuid, bigint[]),
    -- Citus: granted
    -- Citus: end
    memory_private.store_path(text[]), memory_private.store_words(jsonb), memory_private.store_lexemes(text),
    memory_private.store_number(jsonb), memory_private.store_time(jsonb), memory_private.store_list(jsonb),
    memory_private.store_condition(jsonb, text), memory_private.store_refresh(text, text[], text[], timestamptz),
    memory_private.store_get(text, json, timestamptz), memory_private.store_search(text, json, timestamptz),
    memory_private.store_namespaces(text, json, timestamptz),
    memory_private.store_embed(text, text, text, text, json), memory_private.store_put(text, json, timestamptz)
    to authenticated, service_role;
  grant execute on function
    memory_private.access(), memory_private.stored(regclass), memory_private.sampled_vectors(text), memory_private.longest_wait(),
    memory_private.vector_indexes(boolean), memory_private.live(), memory_private.published_columns(text),
    memory_private.check_publication(),
    memory_private.is_alive(jsonb), memory_private.resumes_at(jsonb), memory_private.waits(jsonb),
    memory_private.take(text, timestamptz, text, float8) to service_role;
  -- They run with the reader's rights, so the tables' policies hold for them.
  grant select on memory.conversation_turns, memory.current_summaries to authenticated, service_role;

  foreach v_name in array v_owned loop
    execute format('alter table memory.%I enable row level security', v_name);
    execute format('alter table memory.%I force row level security', v_name);
    execute format('grant select, insert, update, delete on memory.%I to authenticated, service_role', v_name);
    execute format('create policy %I on memory.%I for select to authenticated using (%s)', v_name || '_select', v_name, v_is_own);
    execute format('create policy %I on memory.%I for insert to authenticated with check (%s)', v_name || '_insert', v_name, v_is_own);
    execute format('create policy %1$I on memory.%2$I for update to authenticated using (%3$s) with check (%3$s)', v_name || '_update', v_name, v_is_own);
    execute format('create policy %I on memory.%I for delete to authenticated using (%s)', v_name || '_delete', v_name, v_is_own);
  end loop;

  -- A partition is reached through its table alone, whose policies hold: it has no grant and no policy of its own.
  for v_name in select c.relname from pg_catalog.pg_class c
                where c.relispartition and c.relkind = 'r' and c.relnamespace = 'memory_private'::regnamespace
  loop
    execute format('alter table memory_private.%I enable row level security, force row level security', v_name);
  end loop;

  -- On a Postgres of yours the role that migrates may neither be a superuser nor bypass row level security. It is the
  -- server's own role then, like service_role.
  if not (select rolsuper or rolbypassrls from pg_catalog.pg_roles where rolname = current_user) then
    foreach v_name in array v_owned loop
      execute format('create policy %I on memory.%I to current_user using (true) with check (true)', v_name || '_server', v_name);
    end loop;
  end if;

  foreach v_name in array v_ledger loop
    execute format('alter table memory_private.%I enable row level security', v_name);
    execute format('alter table memory_private.%I force row level security', v_name);
    execute format('create policy %I on memory_private.%I to current_user using (true) with check (true)', v_name || '_migrator', v_name);
  end loop;
  -- What was shipped is compared with what holds by who serves.
  grant select on memory_private.installation to service_role;
  create policy installation_server on memory_private.installation for select to service_role using (true);

  foreach v_name in array v_work loop
    execute format('alter table memory_private.%I enable row level security', v_name);
    execute format('alter table memory_private.%I force row level security', v_name);
    execute format('grant select, insert, update, delete on memory_private.%I to service_role', v_name);
    execute format('create policy %I on memory_private.%I to service_role using (true) with check (true)', v_name || '_server', v_name);
    execute format('create policy %I on memory_private.%I to current_user using (true) with check (true)', v_name || '_migrator', v_name);
  end loop;
  grant select on memory_private.work to authenticated;
  execute format('create policy work_select on memory_private.work for select to authenticated using (%s)', v_is_own);
  -- The limits are the operator's to set, and no secret.
  alter table memory_private.limits enable row level security;
  alter table memory_private.limits force row level security;
  grant select on memory_private.limits to authenticated, service_role;
  create policy limits_select on memory_private.limits for select to authenticated, service_role using (true);
  create policy limits_migrator on memory_private.limits to current_user using (true) with check (true);
  -- Which stage holds is no secret of anybody's; who set it is the servers'.
  alter table memory.rollouts enable row level security;
  alter table memory.rollouts force row level security;
  grant select (agent_id, version, stage, share, rest, set_at) on memory.rollouts to authenticated;
  grant select, insert on memory.rollouts to service_role;
  create policy rollouts_select on memory.rollouts for select to authenticated using (true);
  create policy rollouts_server on memory.rollouts to service_role using (true) with check (true);
  create policy rollouts_migrator on memory.rollouts to current_user using (true) with check (true);

  -- Both are needed: Postgres grants execute to public, and older projects grant it to anon by name.
  foreach v_name in array v_verbs || v_worker loop
    execute format('revoke all on function public.%I from public, anon, authenticated, service_role', v_name);
    execute format('grant execute on function public.%I to service_role', v_name);
  end loop;
  foreach v_name in array v_verbs loop
    execute format('grant execute on function public.%I to authenticated', v_name);
  end loop;
  update memory_private.installation set access = memory_private.access();
end
$access$;

-- The Data API learns of the new functions; without one, nobody listens.
notify pgrst, 'reload schema';
