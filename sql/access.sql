-- Every grant and every policy. Replaced as a whole at every upgrade. A new table or verb is opened by adding its name
-- to one of the lists.
do $access$
declare
  -- Tables of users: each row belongs to user_id, and only to that user.
  v_owned  constant text[] := array[
    'conversations', 'conversation_messages', 'message_blocks', 'gone_messages', 'superseded_messages',
    'conversation_summaries', 'summary_embeddings',
    'working_memory_chunks', 'chunk_postings', 'chunk_embeddings', 'chunk_ratings',
    'conversation_summary_boards', 'conversation_board_items', 'conversation_board_changes',
    'store_items', 'store_vectors', 'promotions',
    'opt_outs', 'opt_out_undos', 'control_changes', 'context_manifests', 'contributions',
    'profile_items', 'profile_evidence', 'consents', 'topics', 'topic_stretches', 'indexed_stretches',
    'topic_clusterings',
    'usage_days', 'usage_cursors', 'reads'];
  -- Those of a user alone, of which no member of a space reads anything.
  v_private constant text[] := '{promotions,contributions,profile_items,profile_evidence,consents,usage_days,usage_cursors,reads}';
  -- Tables about spaces. Users read their own memberships, and the spaces that they are in; definers write.
  v_spaces constant text[] := array['spaces', 'memberships', 'invitations'];
  -- Tables of the migrations, only for the role that migrates.
  v_ledger constant text[] := array['migrations', 'installation', 'insight_rules'];
  -- Tables that workers share, only for servers. A user may see the work on their own conversations.
  v_work   constant text[] := array['work', 'owners', 'drafts', 'chores'];

  -- Verbs for signed-in users, and for servers on behalf of any user.
  v_verbs  constant text[] := array[
    -- Conversations: store, read, find and count messages; list them, set a title; forget them; quarantine those that
    -- cannot be read.
    'memory_append', 'memory_read', 'memory_reinstate', 'memory_find', 'memory_count', 'memory_conversations', 'memory_update',
    'memory_forget', 'memory_forget_message', 'memory_forget_expired', 'memory_set_aside', 'memory_unreadable',
    -- Turns, the context of the next prompt, and the manifests of earlier ones.
    'memory_turns', 'memory_context', 'memory_append_context', 'memory_manifests', 'memory_prompt',
    -- Summaries: which conversations are due, what to summarize, and the result; read, correct and find them.
    'memory_due', 'memory_pending', 'memory_commit_summary', 'memory_commit_parent', 'memory_describe_summary',
    'memory_fail_summary', 'memory_summaries', 'memory_coverage', 'memory_edit_summary',
    'memory_unembedded_summaries', 'memory_embed_summaries', 'memory_recall_summaries',
    -- Chunks: which conversations are due, what to index, and the result; find, list and rate them.
    'memory_index_due', 'memory_pending_chunks', 'memory_commit_chunks', 'memory_fail_index', 'memory_reembed',
    'memory_recall', 'memory_chunks', 'memory_rate_chunk', 'memory_signals',
    -- Boards: what to revise one with, and the result; read and edit it.
    'memory_pending_board', 'memory_commit_board', 'memory_board', 'memory_edit_board',
    -- The store, and moving what a profile holds to a long-term memory elsewhere.
    'memory_store', 'memory_store_sweep', 'memory_store_reindex',
    'memory_promote', 'memory_withdrawn',
    -- Controls: opt-outs, and the record of changes.
    'memory_opt_out', 'memory_opt_in', 'memory_opt_outs', 'memory_control_changes',
    -- Transfer: export and import of conversations, and of what people set in them.
    'memory_edits', 'memory_restore', 'memory_export', 'memory_import',
    -- Work: request a summary now, and read the status.
    'memory_request', 'memory_status',
    -- Rollout: which context a user receives, and comparisons of the old and the new one.
    'memory_rollout', 'memory_compare', 'memory_comparisons', 'memory_comparison_report',
    -- Spaces: create, list and erase them; see and set who is in them.
    'memory_create_space', 'memory_update_space', 'memory_spaces', 'memory_space', 'memory_invite', 'memory_join',
    'memory_set_member', 'memory_name_member', 'memory_forget_space', 'memory_contribute', 'memory_withdraw', 'memory_held',
    -- The profile of a person, and what they allow.
    'memory_profile', 'memory_edit_profile', 'memory_consent', 'memory_consents',
    -- Topics: find them for what was indexed, and anew; list, edit and forget them.
    'memory_assign_topics', 'memory_topic_stretches', 'memory_commit_topics', 'memory_topics', 'memory_topic_days',
    'memory_edit_topic', 'memory_forget_topic',
    -- Usage by day, and what advice looks at.
    'memory_usage', 'memory_recent_packs', 'memory_unread',
    -- The database: what is installed, and the limits of a call.
    'memory_schema', 'memory_limits'];

  -- Verbs for workers and operators, with a server's key.
  v_worker constant text[] := array[
    -- A piece of work: claim, keep and finish it.
    'memory_worker_claim', 'memory_worker_heartbeat', 'memory_worker_keep_draft', 'memory_worker_finish',
    'memory_worker_release',
    -- Maintenance of all conversations.
    'memory_worker_chore', 'memory_worker_rederive', 'memory_worker_idle', 'memory_worker_archive',
    'memory_worker_topics',
    -- Usage: what is not counted yet, counting it, and numbers of users.
    'memory_worker_usage', 'memory_worker_count_usage', 'memory_worker_insights',
    -- Operators: inspect the queue, the users and the database, retry what was given up, set the stage of an agent.
    'memory_worker_queue', 'memory_worker_doctor', 'memory_worker_revive', 'memory_worker_set_rollout',
    'memory_worker_rollouts', 'memory_worker_users'];

  -- The comparison with the owner. The select around it, with the arrow inside, makes it run once per statement and not
  -- once per row. Supabase's advisor looks for the inner select. Text, so that a third-party identity works too.
  -- memory_private.resolve_owner() reads the same from the token.
  v_is_own constant text := $$user_id = (select (select auth.jwt()) ->> 'sub')$$;
  -- Who may read a row: its owner, and where spaces are switched on, whoever is in the space that owns it. One list,
  -- asked for once in a statement, and never an "or", which gets another plan. A function with a plan of its own costs
  -- half of what the same look-up costs here, where its policies are planned along. Nobody writes by it.
  -- Citus: readers
  v_reads  constant text := case when not memory_private.has_spaces() then v_is_own else
    $$user_id = any ((select memory_private.readable_owners())::text[])$$ end;
  -- Whose token names a space as its subject reaches nothing.
  v_no_space constant text := $$(select coalesce((select auth.jwt()) ->> 'sub', '') !~ '^space:')$$;
  -- Citus: end
  v_name   text;
  v_policy record;
begin
  for v_policy in select schemaname, tablename, policyname from pg_catalog.pg_policies
                  where schemaname in ('memory', 'memory_private')
  loop
    execute format('drop policy %I on %I.%I', v_policy.policyname, v_policy.schemaname, v_policy.tablename);
  end loop;

  -- Default privileges of the project, old or new, must not apply: revoke everything first, then grant.
  revoke all on schema memory, memory_private from public, anon, authenticated, service_role;
  revoke all on all tables in schema memory, memory_private from public, anon, authenticated, service_role;
  revoke all on all functions in schema memory_private from public, anon, authenticated, service_role;
  grant usage on schema memory, memory_private to authenticated, service_role;
  grant execute on function
    memory_private.resolve_owner(text), memory_private.resolve_writer(text, text), memory_private.resolve_scope(text),
    memory_private.readable_owners(),
    memory_private.is_server(), memory_private.has_spaces(), memory_private.check_space(text, boolean),
    memory_private.lock_owner(text, text, boolean), memory_private.lock_space(text, boolean),
    memory_private.lock_memberships(text),
    memory_private.check_role(text, text, integer, boolean), memory_private.role_names(), memory_private.name_looks(text), memory_private.role_name(integer),
    memory_private.role_number(text), memory_private.person_labels(text), memory_private.asker_label(text, text),
    memory_private.chunk_speaker(memory.working_memory_chunks),
    memory_private.check_retention(json),
    memory_private.effective_retention(text, json), memory_private.act_as_member(text, text, jsonb, json), memory_private.resolve_person(text),
    memory_private.plain_letters(text), memory_private.locate_quote(text, text),
    memory_private.author_kind(text), memory_private.current_limits(),
    memory_private.check_limits(json, boolean), memory_private.is_shallow(text), memory_private.is_text_list(text[]),
    memory_private.checked_metadata_bytes(jsonb), memory_private.hour_of(timestamptz), memory_private.one_line(text),
    memory_private.first_words(text, integer), memory_private.conversation_json(memory.conversations, json, boolean),
    memory_private.encode_cursor(timestamptz, uuid), memory_private.normalize_messages(json),
    memory_private.normalize_message(bigint, json), memory_private.normalize_data(bigint, text, text, json),
    memory_private.normalize_calls(bigint, json, json), memory_private.parse_arguments(text),
    memory_private.message_columns(jsonb, text), memory_private.content_words(jsonb, jsonb),
    memory_private.strip_thinking(text), memory_private.media_reference(jsonb), memory_private.clean_file_name(text),
    memory_private.json_texts(jsonb), memory_private.is_encrypted(text, text), memory_private.estimate_tokens(text),
    memory_private.check_types(bigint, jsonb, jsonb, text), memory_private.raise_invalid_message(bigint, text, text),
    memory_private.checked_message_bytes(json, text, jsonb, jsonb, integer, integer),
    memory_private.invalidate_summaries(text, uuid, bigint, text),
    memory_private.tail_start(text, uuid, bigint, bigint, integer, bigint, int8multirange),
    memory_private.summary_cut(text, uuid, bigint, bigint, integer, int8multirange),
    memory_private.kept_characters(float8, bigint, float8, bigint),
    memory_private.exceeds_policy(memory.conversations, json),
    memory_private.is_summary_due(memory.conversations, bigint, int8multirange, json),
    memory_private.step_retention(memory.conversations, json, bigint), memory_private.delete_expired(text, uuid, json, boolean, bigint), memory_private.private_times(),
    memory_private.forget_private(text, integer, text, text),
    memory_private.expiring_page(text, text, text, text, uuid, integer, json),
    memory_private.begin_conversation(text, text, text, boolean), memory_private.refuse_append(uuid),
    memory_private.record_deleted_messages(text, uuid, text[]), memory_private.find_expired(memory.conversations, json),
    memory_private.expired_derived(text, uuid, json), memory_private.sequences_older_than(text, uuid, timestamptz),
    memory_private.range_totals(text, uuid, int8multirange),
    memory_private.update_block_counts(text, uuid, int8multirange, integer, bigint),
    memory_private.count_turns_in_range(text, uuid, bigint, bigint),
    memory_private.sizes_from(text, uuid, bigint, bigint),
    memory_private.count_turns_before(text, uuid, bigint, bigint, boolean),
    memory_private.question_of_turn(text, uuid, bigint, bigint),
    memory_private.question_at(text, uuid, bigint),
    memory_private.late_answers(text, uuid),
    memory_private.count_late_turns(text, uuid, record, bigint, bigint, bigint, int8multirange),
    memory_private.with_summary_position(memory.conversations, bigint, int8multirange, boolean, boolean),
    memory_private.context_segments(memory.conversations, int8multirange, bigint),
    memory_private.context_board(text, uuid, integer, bigint, int8multirange),
    memory_private.check_shared(json), memory_private.context_shared(text, uuid, json, json),
    memory_private.context_profile(text, text, integer),
    memory_private.context_messages(memory.conversations, bigint, int8multirange, bigint, bigint, integer),
    memory_private.range_pairs(int8multirange),
    memory_private.sequence_of_message(text, uuid, text),
    memory_private.move_messages(text, uuid, bigint[], boolean),
    memory_private.insert_messages(text, uuid, bigint, json, integer, text[], text),
    memory_private.replace_superseded(text, uuid, text[], text, json),
    memory_private.update_messages(text, uuid, bigint, json, boolean, json, text),
    memory_private.finish_append(text, uuid, bigint, integer, bigint, json, json, jsonb, json, boolean),
    memory_private.delete_message_range(text, uuid, bigint, bigint), memory_private.owner_digest(text),
    memory_private.database_id(), memory_private.branch_forks(text, uuid),
    memory_private.abandoned_ranges(text, uuid, bigint),
    memory_private.abandoned_messages(memory.conversations, bigint, jsonb, bigint),
    memory_private.superseded_by_state(memory.conversations, json, bigint), memory_private.is_text_list(json),
    memory_private.check_branch(json), memory_private.prepare_branch(text, text, text, json),
    memory_private.apply_branch(text, uuid, bigint, json, jsonb), memory_private.written_by(text, uuid, bigint[], text),
    memory_private.apply_branch_alone(text, text, text, json, jsonb),
    memory_private.expire_superseded(text, uuid, timestamptz, bigint),
    memory_private.update_summary_position(text, uuid), memory_private.fold_text(text),
    memory_private.normalize_letters(text, boolean), memory_private.contains_texts(text, text, json, text[], boolean),
    memory_private.mentions(text, text[], text), memory_private.remove_mentions(text, text[], text),
    memory_private.split_sentences(text), memory_private.remove_phrases(text, text[]),
    memory_private.sentence_patterns(text[]), memory_private.deleted_item_words(text, uuid),
    memory_private.opted_out_topics(text, uuid), memory_private.topics_for_writer(text, uuid),
    memory_private.lock_opt_outs(text, boolean), memory_private.delete_derived(text, uuid),
    memory_private.delete_topic_mentions(text, uuid, text), memory_private.snapshot_derived(text, uuid),
    memory_private.save_undo(text, uuid, uuid, jsonb), memory_private.undo_opt_out(text, uuid),
    memory_private.subtract_expired_gaps(text, uuid, bigint, bigint[], integer[], integer[]),
    memory_private.backoff_until(integer, float8), memory_private.text_search_config(text),
    memory_private.stemmer(text), memory_private.unify_letters(text), memory_private.remove_accents(text),
    memory_private.arabic_stems(text), memory_private.compound_parts(regdictionary, text),
    memory_private.word_forms(regdictionary, text, boolean),
    memory_private.lexemes(text, text), memory_private.detect_language(text),
    memory_private.summary_lexemes(text, text), memory_private.author_word(text),
    memory_private.chunk_search_text(text, text, text, text, timestamptz),
    memory_private.insert_postings(text, uuid, text[], bigint[], integer[], integer[]),
    memory_private.delete_postings(text, text, uuid, bigint, bigint[]),
    memory_private.delete_chunks(text, uuid, bigint[]), memory_private.expire_chunks(text, uuid),
    memory_private.refused_purposes(text), memory_private.signals_left(text, uuid),
    memory_private.last_tool_failed(text, uuid, bigint), memory_private.clear_speech(text, text),
    memory_private.invalidate_chunks(text, uuid, bigint, bigint, boolean),
    memory_private.delete_ratings(text, uuid, bigint[]), memory_private.reindex_from(text, uuid, bigint),
    memory_private.settle_language(memory.conversations, json, text),
    memory_private.without_topics(json, text[], text), memory_private.search_lengths(bigint[], integer[], bigint[]),
    memory_private.changed_lengths(text, uuid, bigint[], integer[], bigint[]),
    memory_private.check_model(text, uuid[], text, integer), memory_private.recall(text, uuid[], json),
    memory_private.recall_one(text, uuid[], json, json), memory_private.match_speakers(text, uuid[], text[], text[], text[]),
    memory_private.within_edit_distance(text, text, integer),
    memory_private.surrounding_chunks(text, uuid, bigint, integer, integer, boolean, int8multirange),
    memory_private.chunk_json(memory.working_memory_chunks, text, text),
    memory_private.nearest_sql(boolean, integer), memory_private.traits_sql(), memory_private.pool_sql(boolean),
    memory_private.chunk_filter_sql(text, text, text, text, text, text), memory_private.query_filter_sql(),
    memory_private.words_sql(boolean), memory_private.bm25_sql(boolean), memory_private.score_sql(),
    memory_private.ranking_sql(boolean, boolean, boolean), memory_private.rank_all(record),
    memory_private.rank_near(record), memory_private.fuse_all(record), memory_private.fuse_near(record),
    memory_private.rank_all_words(record), memory_private.rank_near_words(record),
    memory_private.fuse_all_words(record), memory_private.fuse_near_words(record),
    memory_private.named_speakers(text, uuid[], text[], text[]), memory_private.named_members(text, uuid[], text[], text[], text),
    memory_private.some_speakers(text, uuid[]), memory_private.tune_vector_index(integer),
    memory_private.choose_chunks(text, record, record), memory_private.chosen_chunks(text, record, record, record),
    memory_private.count_repeats(uuid[], record, record, record, boolean),
    memory_private.superseding_facts(text, uuid[], json),
    memory_private.recall_scope(text, text, uuid, text, json), memory_private.without_expired(jsonb, jsonb),
    memory_private.recall_kept(text, uuid, uuid[], json, json), memory_private.item_digest(text),
    memory_private.item_states(text), memory_private.is_name_kind(text),
    memory_private.invalidate_board(text, uuid, bigint, text),
    memory_private.delete_board_evidence(text, uuid, bigint, text),
    memory_private.board_items(text, uuid, boolean, integer),
    memory_private.wordless_item(memory.conversation_board_items),
    memory_private.note_board_version(text, uuid, boolean),
    memory_private.board_version_at(memory.conversation_summary_boards, timestamptz),
    memory_private.board_items_at(text, uuid, bigint, boolean, integer),
    memory_private.board_at(memory.conversation_summary_boards, bigint),
    memory_private.prompt_passages(text, uuid, json),
    memory_private.item_author_id(memory.conversation_board_items),
    memory_private.add_board_items(memory.conversations, bigint, bigint, bigint, json, text[], text),
    memory_private.close_board_items(
      memory.conversations, bigint, bigint, bigint, json, text, jsonb, integer),
    memory_private.add_board_item(text, uuid, text, text, text, text, text, text, timestamptz),
    memory_private.edit_board_item(memory.conversation_board_items, text, text, text, text, text, timestamptz),
    memory_private.delete_board_item(memory.conversation_board_items, text, text, timestamptz),
    memory_private.reset_board(memory.conversations), memory_private.parse_past_time(text),
    memory_private.work_state(timestamptz, timestamptz), memory_private.count_failures(jsonb, text[]),
    memory_private.restore_details(memory.conversations, jsonb, text[]),
    memory_private.restore_board_summary(memory.conversations, jsonb, text[], bigint, integer),
    memory_private.restore_board_items(memory.conversations, jsonb, text[], bigint, integer),
    memory_private.restore_board(memory.conversations, jsonb, text[], integer),
    memory_private.restore_ratings(text, uuid, jsonb), memory_private.restore_summaries(memory.conversations, jsonb),
    memory_private.in_share(text, float8), memory_private.allowed_priority(smallint, smallint),
    memory_private.is_valid_manifest(json, jsonb, bigint, bigint, timestamptz, timestamptz),
    memory_private.comparison_columns(jsonb), memory_private.insert_manifest(text, uuid, bigint, bigint, json),
    memory_private.expire_manifests(text, uuid, integer),
    memory_private.expire_owner_manifests(text, text, text, bigint), memory_private.delete_turn_manifests(text, uuid, bigint),
    memory_private.manifest_sequences(json), memory_private.manifest_items(json),
    memory_private.item_edit_times(text, uuid, bigint[]),
    memory_private.lock_profile(text), memory_private.resolve_profile_owner(text), memory_private.fold_profile_text(text),
    memory_private.profile_chain(text, text, text, text), memory_private.profile_digest(text, text, text, integer),
    memory_private.profile_bases(), memory_private.takes_over(integer, integer),
    memory_private.profile_events(text, text), memory_private.profile_spans(text, text),
    memory_private.settle_profile(text, text), memory_private.refuses(text, text),
    memory_private.profile_row(text, jsonb, text, text, text, text, timestamptz),
    memory_private.add_profile_evidence(text, text, text, uuid, memory.profile_evidence),
    memory_private.checked_profile_item(json), memory_private.is_own_message(memory.conversation_messages),
    memory_private.is_relayed_message(memory.conversation_messages),
    memory_private.open_profile_row(text, jsonb, text, text, text, text, timestamptz),
    memory_private.contradicted_at(memory.profile_evidence), memory_private.note_contradictions(text, uuid),
    memory_private.profile_clock(text, text),
    memory_private.suggest_profile_item(text, jsonb, text),
    memory_private.add_profile_items(memory.conversations, json, text),
    memory_private.delete_profile_evidence(text, uuid, text[], text, boolean),
    memory_private.forget_profile(text, text, text, boolean), memory_private.delete_profile_mentions(text, uuid, text),
    memory_private.profile_json(memory.profile_items, timestamptz),
    memory_private.restore_profile_item(text, json, text[]), memory_private.restore_profile(text, json), memory_private.delete_refused(text, text),
    memory_private.assert_profile_item(text, jsonb, text, text), memory_private.delete_profile_item(memory.profile_items),
    memory_private.filler_words(), memory_private.topic_words(text, text),
    memory_private.stretch_features(text, uuid, bigint, text, text),
    memory_private.nearest_topic(text, text[], text, {{vector_schema}}.halfvec, real, uuid, boolean),
    memory_private.newest_topic_stretches(text, uuid), memory_private.count_topic_stretches(text, uuid[], bigint[]),
    memory_private.describe_topic(text, uuid), memory_private.describe_topics(text, uuid[]),
    memory_private.move_stretches(text, uuid[], uuid[], bigint[]), memory_private.rate_stretches(text, uuid[]),
    memory_private.mark_indexed_stretches(text, uuid, integer), memory_private.mark_all_stretches(text),
    memory_private.delete_topic_stretches(text, uuid, bigint[], bigint[]), memory_private.delete_topics(text),
    memory_private.delete_topic_names(text, text), memory_private.merge_smallest_topics(text),
    memory_private.count_new_stretches(text, bigint), memory_private.central_chunk(memory.conversations, bigint, json),
    memory_private.find_topic(text, uuid), memory_private.kept_topic_words(text, uuid, text[], json),
    memory_private.restore_topics(text, json), memory_private.delete_usage(text),
    memory_private.held_evidence(text, uuid), memory_private.is_promoted(text, text, uuid, uuid[], uuid),
    -- Citus: granted
    -- Citus: end
    memory_private.store_path(text[]), memory_private.store_words(jsonb), memory_private.store_lexemes(text),
    memory_private.store_number(jsonb), memory_private.store_time(jsonb), memory_private.store_list(jsonb),
    memory_private.store_condition(jsonb, text), memory_private.store_refresh(text, text[], text[], timestamptz),
    memory_private.store_get(text, json, timestamptz), memory_private.store_search(text, json, timestamptz),
    memory_private.store_namespaces(text, json, timestamptz), memory_private.store_embed(text, text, text, text, json),
    memory_private.store_put(text, json, timestamptz)
    to authenticated, service_role;
  grant execute on function
    memory_private.label_person(text, text, text), memory_private.delete_contributed_item(text, uuid, text, text),
    memory_private.forget_editor(text, text[]), memory_private.forget_shared(text, boolean),
    memory_private.describe_access(),
    memory_private.session_settings(), memory_private.storage_relations(regclass), memory_private.sample_share(regclass), memory_private.sample_vectors(text), memory_private.sample_profile(),
    memory_private.longest_wait(), memory_private.open_checkpoint_tables(), memory_private.vector_indexes(boolean),
    memory_private.realtime_tables(),
    memory_private.published_columns(text), memory_private.check_publication(),
    memory_private.has_remaining_steps(jsonb), memory_private.first_retry_at(jsonb),
    memory_private.bounded_count(numeric), memory_private.pack_usage(json), memory_private.pack_reads(json),
    memory_private.usage_steps(text, uuid[], integer), memory_private.add_usage(text, jsonb),
    memory_private.add_chunk_usage(text, jsonb), memory_private.add_reads(text, jsonb),
    memory_private.insight_noise(text, text, bigint, float8),
    memory_private.work_account(text), memory_private.delay_account(text, timestamptz),
    memory_private.backing_off_steps(jsonb), memory_private.claim_next(text, timestamptz, text, float8) to service_role;
  -- The views run with the reader's rights, so the tables' policies apply.
  grant select on memory.conversation_turns, memory.current_summaries, memory.topic_days, memory.usage_by_day to authenticated, service_role;
  grant select on memory.insights to service_role;

  foreach v_name in array v_owned loop
    execute format('alter table memory.%I enable row level security', v_name);
    execute format('alter table memory.%I force row level security', v_name);
    execute format('grant select, insert, update, delete on memory.%I to authenticated, service_role', v_name);
    execute format('create policy %I on memory.%I for select to authenticated using (%s)', v_name || '_select', v_name,
      case when v_name = any (v_private) then v_is_own else v_reads end);
    execute format('create policy %I on memory.%I for insert to authenticated with check (%s)', v_name || '_insert', v_name, v_is_own);
    execute format('create policy %1$I on memory.%2$I for update to authenticated using (%3$s) with check (%3$s)', v_name || '_update', v_name, v_is_own);
    execute format('create policy %I on memory.%I for delete to authenticated using (%s)', v_name || '_delete', v_name, v_is_own);
  end loop;

  -- What a row says is what its deletion takes back: one function writes them.
  revoke insert, update on memory.contributions from authenticated;
  -- Nobody counts for themself what is given out over all users.
  revoke insert, update on memory.usage_days, memory.usage_cursors, memory.reads from authenticated;

  foreach v_name in array v_spaces loop
    execute format('alter table memory.%I enable row level security', v_name);
    execute format('alter table memory.%I force row level security', v_name);
    execute format('grant select, insert, update, delete on memory.%I to service_role', v_name);
    execute format('create policy %I on memory.%I to service_role using (true) with check (true)', v_name || '_service', v_name);
  end loop;
  grant select on memory.spaces, memory.memberships to authenticated;
  execute format('create policy spaces_select on memory.spaces for select to authenticated using (%s)', v_reads);
  execute format('create policy memberships_select on memory.memberships for select to authenticated using (%s)', v_is_own);
  if memory_private.has_spaces() then
    foreach v_name in array v_owned || '{spaces,memberships}' loop
      execute format('create policy %I on memory.%I as restrictive to authenticated using (%s)', v_name || '_no_space', v_name, v_no_space);
    end loop;
    execute format('create policy work_no_space on memory_private.work as restrictive to authenticated using (%s)', v_no_space);
  end if;

  -- Partitions are reached only through their table, whose policies apply: they have no grants and no policies.
  for v_name in select c.relname from pg_catalog.pg_class c
                where c.relispartition and c.relkind = 'r' and c.relnamespace = 'memory_private'::regnamespace
  loop
    execute format('alter table memory_private.%I enable row level security, force row level security', v_name);
  end loop;

  -- On your own Postgres the migrating role may be no superuser and may not bypass row level security. Then it is the
  -- server's role, like service_role.
  if not (select rolsuper or rolbypassrls from pg_catalog.pg_roles where rolname = current_user) then
    foreach v_name in array v_owned || v_spaces loop
      execute format('create policy %I on memory.%I to current_user using (true) with check (true)', v_name || '_server', v_name);
    end loop;
  end if;

  foreach v_name in array v_ledger loop
    execute format('alter table memory_private.%I enable row level security', v_name);
    execute format('alter table memory_private.%I force row level security', v_name);
    execute format('create policy %I on memory_private.%I to current_user using (true) with check (true)', v_name || '_migrator', v_name);
  end loop;
  -- Servers compare what was shipped with what is installed.
  grant select on memory_private.installation to service_role;
  create policy installation_server on memory_private.installation for select to service_role using (true);
  grant select on memory_private.insight_rules to service_role;
  create policy insight_rules_server on memory_private.insight_rules for select to service_role using (true);

  foreach v_name in array v_work loop
    execute format('alter table memory_private.%I enable row level security', v_name);
    execute format('alter table memory_private.%I force row level security', v_name);
    execute format('grant select, insert, update, delete on memory_private.%I to service_role', v_name);
    execute format('create policy %I on memory_private.%I to service_role using (true) with check (true)', v_name || '_server', v_name);
    execute format('create policy %I on memory_private.%I to current_user using (true) with check (true)', v_name || '_migrator', v_name);
  end loop;
  grant select on memory_private.work to authenticated;
  execute format('create policy work_select on memory_private.work for select to authenticated using (%s)', v_reads);
  -- Only the operator sets the limits; everybody may read them.
  alter table memory_private.limits enable row level security;
  alter table memory_private.limits force row level security;
  grant select on memory_private.limits to authenticated, service_role;
  create policy limits_select on memory_private.limits for select to authenticated, service_role using (true);
  create policy limits_migrator on memory_private.limits to current_user using (true) with check (true);
  -- Everybody may read the current stage; only servers may read who set it.
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
  update memory_private.installation set access = memory_private.describe_access();
end
$access$;

-- Tells the Data API about the new functions. Without a Data API nobody listens.
notify pgrst, 'reload schema';
