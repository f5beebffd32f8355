-- The state of the database, for operators: from catalogs, statistics and at most a hundred rows per table, so it costs
-- the same for a hundred conversations as for a million.

-- Describes the access rights: one sentence per grant, policy and setting of row level security in the catalog. A
-- migration stores the result in memory_private.installation; a later difference means that somebody changed them.
create or replace function memory_private.describe_access() returns text[]
language sql stable security invoker set search_path = ''
set quote_all_identifiers = off set standard_conforming_strings = on -- the same words in every session
as $function$
  with relations as (
    select c.oid, c.relkind, c.relowner, c.relrowsecurity, c.relforcerowsecurity, c.relacl,
           format('%I.%I', n.nspname, c.relname) as name
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where n.nspname in ('memory', 'memory_private') and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')),
  code as (
    -- The doctor reports the schema of pgvector in another finding.
    select p.proowner, p.proacl, p.prosecdef,
           regexp_replace(p.oid::regprocedure::text, '([(,])[^(),]+\.(vector|halfvec|sparsevec)\M', '\1\2', 'g') as name
    from pg_catalog.pg_proc p
    where p.pronamespace = 'memory_private'::regnamespace
       or (p.pronamespace = 'public'::regnamespace
           and starts_with(pg_catalog.obj_description(p.oid, 'pg_proc'), 'langchain-supabase-memory:'))),
  held as (
    select r.name, r.relowner as owner, a.* from relations r
    cross join lateral aclexplode(coalesce(r.relacl, acldefault(case r.relkind when 'S' then 's' else 'r' end::"char", r.relowner))) a
    union all
    select format('%s.%I', r.name, t.attname), r.relowner, a.*
    from relations r join pg_catalog.pg_attribute t on t.attrelid = r.oid and t.attacl is not null
    cross join lateral aclexplode(t.attacl) a
    union all
    select c.name, c.proowner, a.* from code c
    cross join lateral aclexplode(coalesce(c.proacl, acldefault('f', c.proowner))) a
    union all
    select format('the schema %I', n.nspname), n.nspowner, a.* from pg_catalog.pg_namespace n
    cross join lateral aclexplode(coalesce(n.nspacl, acldefault('n', n.nspowner))) a
    where n.nspname in ('memory', 'memory_private')),
  lines (line) as (
    select format('%s may %s %s', case h.grantee when 0 then 'everybody' else h.grantee::regrole::text end,
                  lower(h.privilege_type), h.name) || case when h.is_grantable then ' and grant it' else '' end
    from held h where h.grantee <> h.owner
    union all
    select format('row level security is %s for %s', case when not r.relrowsecurity then 'off'
                  when r.relforcerowsecurity then 'on and forced' else 'on but not forced' end, r.name)
    from relations r where r.relkind in ('r', 'p')
    union all
    select format('%s runs with the rights of its %s', c.name, case when c.prosecdef then 'owner' else 'caller' end)
    from code c
    union all
    select format('the policy %I of %I.%I: %s for %s to %s using %s with check %s', p.policyname, p.schemaname, p.tablename,
                  lower(p.permissive), lower(p.cmd), array_to_string(p.roles, ', '), coalesce(p.qual, 'none'),
                  coalesce(p.with_check, 'none'))
    from pg_catalog.pg_policies p where p.schemaname in ('memory', 'memory_private'))
  select coalesce(array_agg(l.line order by l.line collate "C"), '{}') from lines l
$function$;

-- Returns the settings of this session that calls depend on, and the statement that resets one where it is set.
create or replace function memory_private.session_settings() returns jsonb
language sql stable security invoker set search_path = ''
as $function$
  select jsonb_agg(jsonb_build_object(
    'name', s.name,
    'value', case when s.unit = 'ms' and s.setting <> '0' then s.setting || ' ms' else s.setting end,
    'milliseconds', case when s.unit = 'ms' then s.setting::integer end,
    'reset', case s.source
      when 'database' then format('alter database %I reset %s', current_database(), s.name)
      when 'user' then format('alter role %I reset %s', session_user, s.name)
      when 'database user' then format('alter role %I in database %I reset %s', session_user, current_database(), s.name)
      when 'global' then format('alter role all reset %s', s.name) end) order by s.name)
  from pg_catalog.pg_settings s
  where s.name in (
    'default_transaction_read_only', 'lock_timeout', 'row_security', 'session_replication_role',
    'standard_conforming_strings', 'statement_timeout', 'transaction_timeout')
$function$;

-- Returns the relations that store a table's rows: the table, or its partitions.
create or replace function memory_private.storage_relations(p_table regclass) returns setof oid
language sql stable security invoker set search_path = ''
as $function$
  select coalesce(i.inhrelid, p_table::oid)
  from (select) t left join pg_catalog.pg_inherits i on i.inhparent = p_table
$function$;

-- Returns the per cent of a table to sample: about ten pages, or all of a small one.
create or replace function memory_private.sample_share(p_table regclass) returns float8
language sql stable security invoker set search_path = ''
as $function$
  select least(100, 1000.0 / greatest(sum(c.relpages), 1)) from pg_catalog.pg_class c
  where c.oid in (select memory_private.storage_relations(p_table))
$function$;

-- Samples chunks: how many have no vector of a model, or only vectors of others, and the dimensions of its vectors.
create or replace function memory_private.sample_vectors(p_model text) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set enable_sort = off set jit = off
as $function$
declare
  v_share constant float8 := memory_private.sample_share('memory.working_memory_chunks');
begin
  return (
    with chunks as materialized (
      select c.user_id, c.conversation_id, c.place, c.part, c.stale
      from memory.working_memory_chunks c tablesample system (v_share) limit 100)
    select jsonb_build_object(
      'chunks', count(*), 'lacking', count(*) filter (where e.dimensions is null),
      'of_others', count(*) filter (where e.dimensions is null and e.has_others),
      'widths', coalesce(jsonb_agg(distinct e.dimensions) filter (where e.dimensions is not null), '[]'))
    from chunks c
    cross join lateral (
      select max(e.dimensions) filter (where e.model = p_model) as dimensions, count(*) > 0 as has_others
      from memory.chunk_embeddings e
      where e.user_id = c.user_id and e.conversation_id = c.conversation_id and e.place = c.place and e.part = c.part) e
    where not c.stale);
end
$function$;

-- Samples profiles: of at most a hundred items how many hold, are proposed, wait as suggestions, and are not settled.
create or replace function memory_private.sample_profile() returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set enable_sort = off set jit = off
as $function$
declare
  v_share constant float8 := memory_private.sample_share('memory.profile_items');
begin
  return (
    with items as materialized (
      select i.user_id, i.id, i.state, i.evidence, i.suggested_at
      from memory.profile_items i tablesample system (v_share) limit 100)
    select jsonb_build_object(
      'items', count(*), 'held', count(*) filter (where i.state = 'held'),
      'proposed', count(*) filter (where i.state = 'proposed'),
      'suggested', count(*) filter (where i.state = 'proposed' and i.suggested_at is not null),
      'unsettled', count(*) filter (where i.state <> 'deleted' and i.evidence <> e.count))
    from items i
    cross join lateral (
      select count(*) as count from memory.profile_evidence e
      where e.user_id = i.user_id and e.item_id = i.id offset 0) e);
end
$function$;

-- Returns the indexes over vectors that are valid, or those whose build did not finish.
create or replace function memory_private.vector_indexes(p_valid boolean) returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select array(
    select r.relname::text from pg_catalog.pg_index i join pg_catalog.pg_class r on r.oid = i.indexrelid
    join pg_catalog.pg_am a on a.oid = r.relam
    where i.indrelid = 'memory.chunk_embeddings'::regclass and a.amname = 'hnsw' and i.indisvalid = p_valid
    order by r.relname)
$function$;

-- Returns how long the oldest claimable work of the next hundred owners has waited, in seconds.
create or replace function memory_private.longest_wait() returns float8
language sql stable security invoker set search_path = ''
set plan_cache_mode = force_generic_plan set enable_sort = off set jit = off
as $function$
  with turns as materialized (
    select o.user_id, o.due_at from memory_private.owners o order by o.turn_at, o.due_at limit 100)
  select coalesce(extract(epoch from clock_timestamp() - min(w.since)), 0)::float8
  from turns t
  cross join lateral (
    select w.since, w.run_after from memory_private.work w
    where w.user_id between t.user_id and t.user_id order by w.user_id, w.run_after limit 1) w
  where t.due_at <= clock_timestamp() and w.run_after <= clock_timestamp()
$function$;

-- Returns LangGraph's tables of checkpoints that the Data API's roles reach: with a grant, in a schema that they may use,
-- and without row level security.
create or replace function memory_private.open_checkpoint_tables() returns text[]
language sql stable security invoker set search_path = ''
as $function$
  select array(
    select format('%I.%I', n.nspname, c.relname)
    from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
    where c.relname in ('checkpoints', 'checkpoint_blobs', 'checkpoint_writes', 'checkpoint_migrations')
      and c.relkind in ('r', 'p') and not c.relrowsecurity
      and exists (
        select from pg_catalog.pg_class m where m.relnamespace = n.oid and m.relname = 'checkpoint_migrations')
      and exists (
        select from pg_catalog.pg_roles r
        where r.rolname in ('anon', 'authenticated') and has_schema_privilege(r.oid, n.oid, 'usage')
          and has_table_privilege(r.oid, c.oid, 'select, insert, update, delete'))
    order by 1)
$function$;

create function public.memory_worker_doctor(
  p_model text default null -- the embedder's name
) returns jsonb
language plpgsql stable security invoker set search_path = ''
set plan_cache_mode = force_custom_plan set enable_sort = off set jit = off set quote_all_identifiers = off
as $function$
declare
  v_shipped text[] := (select i.access from memory_private.installation i);
  v_access  text[] := memory_private.describe_access();
  v_dead    bigint;
begin
  select count(*) into v_dead
    from (select w.dead_at from memory_private.work w where w.dead_at is not null order by w.dead_at limit 100) d;
  return jsonb_build_object(
    'now', clock_timestamp(), 'role', current_user,
    -- A role under row level security without a policy for all rows reads nothing, and gets no error.
    'sees_all', not row_security_active('memory.conversations') or exists (
      select from pg_catalog.pg_policies p cross join lateral unnest(p.roles) r
      where p.schemaname = 'memory' and p.tablename = 'conversations' and p.cmd in ('ALL', 'SELECT') and p.qual = 'true'
        and case when r = 'public' then true else pg_has_role(current_user, r, 'usage') end),
    -- Citus: distributed
    'distributed', false,
    -- Citus: end
    'server', current_setting('server_version_num')::integer,
    -- If everything received is replayed, the lag is zero, however old the last transaction is.
    'replay_lag_seconds', case
      when not pg_is_in_recovery() then null
      when pg_last_wal_replay_lsn() >= pg_last_wal_receive_lsn()
           and exists (select from pg_catalog.pg_stat_wal_receiver) then 0
      else greatest(extract(epoch from
             clock_timestamp() - coalesce(pg_last_xact_replay_timestamp(), pg_postmaster_start_time())), 0)::float8 end,
    'settings', memory_private.session_settings(),
    'installed', public.memory_schema(),
    'vector', (
      select jsonb_build_object('version', e.extversion, 'schema', n.nspname)
      from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname = 'vector'),
    'indexes', to_jsonb(memory_private.vector_indexes(true)),
    'broken_indexes', to_jsonb(memory_private.vector_indexes(false)),
    'added', to_jsonb(array(
      select l from unnest(v_access) l where l <> all (coalesce(v_shipped, '{}')) order by l collate "C")),
    'missing', to_jsonb(array(
      select l from unnest(v_shipped) l where l <> all (v_access) order by l collate "C")),
    'vectors', case when p_model is not null then memory_private.sample_vectors(p_model) end,
    'heartbeat_at', (select max(c.done_at) from memory_private.chores c),
    'expired_at', (select c.done_at from memory_private.chores c where c.name = 'expire'),
    'wait_seconds', memory_private.longest_wait(),
    'dead', v_dead,
    'profile', memory_private.sample_profile(),
    'tables', (
      select jsonb_agg(jsonb_build_object(
        'name', format('%I.%I', n.nspname, c.relname), 'bytes', s.bytes, 'rows', s.rows, 'dead_rows', s.dead_rows,
        'is_vacuumed', s.is_vacuumed, 'vacuumed_at', s.vacuumed_at) order by n.nspname, c.relname)
      from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
      cross join lateral (
        select sum(pg_catalog.pg_total_relation_size(p.oid)) as bytes,
               sum(greatest(p.reltuples::bigint, pg_catalog.pg_stat_get_live_tuples(p.oid), 0)) as rows,
               sum(pg_catalog.pg_stat_get_dead_tuples(p.oid)) as dead_rows,
               bool_and(not exists (
                 select from pg_catalog.pg_options_to_table(p.reloptions) o
                 where o.option_name = 'autovacuum_enabled' and not o.option_value::boolean)) as is_vacuumed,
               max(greatest(pg_catalog.pg_stat_get_last_autovacuum_time(p.oid),
                            pg_catalog.pg_stat_get_last_vacuum_time(p.oid))) as vacuumed_at
        from pg_catalog.pg_class p where p.oid in (select memory_private.storage_relations(c.oid::regclass))) s
      where n.nspname in ('memory', 'memory_private') and c.relkind in ('r', 'p') and not c.relispartition),
    'published', case when exists (select from pg_catalog.pg_publication p where p.pubname = 'supabase_realtime') then
      to_jsonb(array(
        select format('%I.%I', t.schemaname, t.tablename) from pg_catalog.pg_publication_tables t
        where t.pubname = 'supabase_realtime' and t.schemaname in ('memory', 'memory_private') order by 1)) end,
    'columns_added', to_jsonb(array(
      select format('memory.%I.%I', l.name, c)
      from memory_private.realtime_tables() l cross join lateral unnest(memory_private.published_columns(l.name)) c
      where c <> all (l.columns) order by 1)),
    'columns_missing', to_jsonb(array(
      select format('memory.%I.%I', l.name, c)
      from memory_private.realtime_tables() l cross join lateral unnest(l.columns) c
      where c <> all (memory_private.published_columns(l.name)) order by 1)),
    'unidentified', to_jsonb(array(
      select c.relname from pg_catalog.pg_class c
      where c.oid in ('memory.conversations'::regclass, 'memory.conversation_summary_boards'::regclass)
        and c.relreplident = 'n' order by c.relname)),
    'wal_level', current_setting('wal_level'),
    'open_checkpoint_tables', to_jsonb(memory_private.open_checkpoint_tables()),
    'autovacuum', current_setting('autovacuum')::boolean and current_setting('track_counts')::boolean);
end
$function$;
comment on function public.memory_worker_doctor is
  'langchain-supabase-memory: Report the state of the database from catalogs, statistics and at most a hundred rows per
  table.

p_model: the embedder''s name, to find chunks without its vectors; null: vectors are not checked.
Returns: object.
- now: timestamp. The server''s clock.
- role: text. The role of the call.
- sees_all: boolean. Whether row level security shows all users'' rows to that role.
- distributed: boolean. Whether Citus spreads the tables of owners over several nodes.
- server: integer. The version of Postgres, such as 180001.
- replay_lag_seconds: number or null. How far a replica is behind its primary, in seconds; null: it is none.
- settings: object[]. The settings of the session that calls depend on.
- settings[].name: text. The name.
- settings[].value: text. The value.
- settings[].milliseconds: integer or null. The value of a time limit, 0 for none; null: it is none.
- settings[].reset: text or null. The statement that resets it, where it is set for the database or a role.
- installed: object. What memory_schema answers.
- installed.version: text. The release of the package.
- installed.tables: text[]. The names of the table files that were applied.
- installed.checksums: text[]. Their checksums, in the same order.
- installed.code: text. A checksum of the functions and the access rules.
- installed.vector_schema: text. The schema in which the functions look for pgvector.
- installed.vector_moved_to: text or null. The schema of pgvector, if it has moved since the last migration.
- installed.spaces: boolean. Whether spaces are switched on.
- vector: object or null. pgvector; null: it is not installed.
- vector.version: text. Its version.
- vector.schema: text. Its schema.
- indexes: text[]. The names of the usable vector indexes; each ends with its width.
- broken_indexes: text[]. The names of the vector indexes whose build did not finish.
- added: text[]. Grants, policies and rights that were added since the last migration, one sentence each.
- missing: text[]. Those that were removed since.
- vectors: object or null. A sample of at most a hundred chunks; null: p_model is null.
- vectors.chunks: integer. The number of chunks in the sample.
- vectors.lacking: integer. How many have no vector of the model.
- vectors.of_others: integer. How many of these have a vector of another model.
- vectors.widths: integer[]. The dimensions of the model''s vectors.
- heartbeat_at: timestamp or null. When a worker was last seen.
- expired_at: timestamp or null. When a worker last deleted expired data.
- wait_seconds: number. How long the oldest work of the next hundred owners has waited, in seconds.
- dead: integer. The number of conversations with work that was given up, at most a hundred.
- profile: object. A sample of at most a hundred items of profiles.
- profile.items: integer. The number of items in the sample.
- profile.held: integer. How many hold.
- profile.proposed: integer. How many wait for a person.
- profile.suggested: integer. How many of these a model or an import suggested.
- profile.unsettled: integer. How many have other evidence than they were settled by.
- tables: object[]. The tables and their sizes.
- tables[].name: text. Schema and name.
- tables[].bytes: integer. Its size, with its indexes.
- tables[].rows: integer. The estimated number of rows.
- tables[].dead_rows: integer. The estimated number of dead rows.
- tables[].is_vacuumed: boolean. Whether autovacuum is on for it.
- tables[].vacuumed_at: timestamp or null. When it was last vacuumed.
- published: text[] or null. Our tables that Supabase Realtime publishes; null: there is no publication.
- columns_added: text[]. Published columns of these tables that clients should not get, with schema and table.
- columns_missing: text[]. Columns of these tables that clients need and that are not published.
- unidentified: text[]. Which of conversations and boards have no replica identity.
- wal_level: text. The setting wal_level; Realtime needs logical.
- open_checkpoint_tables: text[]. LangGraph''s tables of checkpoints that the Data API''s users reach, with schema and
  name.
- autovacuum: boolean. Whether autovacuum is on.
Errors: none.';
