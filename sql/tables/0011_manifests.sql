-- What stood in a prompt, and why: a manifest of each pack, and a comparison of each call of a rollout. Only numbers.

-- Says whether a row is valid: a manifest is a list of lists of whole numbers, so that it cannot contain words; a
-- comparison is a stage, numbers, and an error in one word. One check of the whole row, because every check of a table
-- costs each statement that writes into it, and an answer waits for this one. Part of the table: it is never changed.
create function memory_private.is_valid_manifest(
  p_pack json, p_comparison jsonb, p_from bigint, p_sequence bigint, p_made_at timestamptz, p_expires_at timestamptz
) returns boolean
language plpgsql immutable security invoker set search_path = ''
as $function$
begin
  if p_pack is not null then -- mostly, so it comes first, in one expression
    return p_comparison is null and p_from >= -1 and p_from <= p_sequence and p_sequence <= 9007199254740991
       and least(p_made_at, p_expires_at) >= '0002-01-01 00:00+00'
       and greatest(p_made_at, p_expires_at) < '9999-01-01 00:00+00'
       and octet_length(p_pack::text) <= 1024
       and p_pack::text ~ ('^\[\[(?:0|-?[1-9][0-9]{0,15})(?:, ?(?:0|-?[1-9][0-9]{0,15}))*\]'
         '(?:, ?\[(?:0|-?[1-9][0-9]{0,15})(?:, ?(?:0|-?[1-9][0-9]{0,15}))*\])*\]$');
  end if;
  if not (p_from between -1 and p_sequence and p_sequence <= 9007199254740991)
     or least(p_made_at, p_expires_at) < '0002-01-01 00:00+00'
     or greatest(p_made_at, p_expires_at) >= '9999-01-01 00:00+00'
     or p_comparison is null
  then
    return false;
  end if;
  return coalesce(
    jsonb_typeof(p_comparison) = 'object'
    and p_comparison ->> 'stage' in ('off', 'parallel', '25', '15', '10', '5', 'on')
    and p_comparison ?& '{old_messages,old_tokens,old_characters,old_ms}'
    and not exists (
      select from jsonb_each(p_comparison) e
      where not coalesce(case
        when e.key = 'stage' then jsonb_typeof(e.value) = 'string'
        when e.key = 'error' then e.value #>> '{}' ~ '^[A-Za-z_][A-Za-z0-9_]{0,99}$'
        when e.key in ('old_ms', 'new_ms') then
          case when jsonb_typeof(e.value) = 'number' then e.value::numeric between 0 and 1000000000000 end
        when e.key in ('old_messages', 'new_messages', 'old_tokens', 'new_tokens', 'old_characters', 'new_characters',
                       'shared', 'only_old', 'only_new', 'covered_by_summary', 'omitted') then
          jsonb_typeof(e.value) = 'number' and e.value #>> '{}' ~ '^[0-9]{1,9}$' end, false)), false);
end
$function$;

create table memory.context_manifests (
  user_id         text        not null,
  conversation_id uuid        not null,
  sequence        bigint      not null,
  id              uuid        not null default gen_random_uuid(),
  from_sequence   bigint      not null,
  made_at         timestamptz not null default clock_timestamp(),
  expires_at      timestamptz,
  pack            json,
  comparison      jsonb,
  primary key (user_id, conversation_id, sequence, id),
  foreign key (user_id, conversation_id) references memory.conversations (user_id, id) on delete cascade,
  check (memory_private.is_valid_manifest(pack, comparison, from_sequence, sequence, made_at, expires_at))
);

create index context_manifests_expiry_idx on memory.context_manifests (user_id, expires_at)
  where expires_at is not null;

comment on table memory.context_manifests is
  'What stood in a prompt and why, a pack for each answer; or during a rollout the last messages beside the pack, for one
  call of the model. Numbers alone, never words.';
comment on column memory.context_manifests.sequence is
  'The last message that was stored with it, mostly the answer; of a comparison the last that was there.';
comment on column memory.context_manifests.from_sequence is
  'The first message that was stored with it.';
comment on column memory.context_manifests.expires_at is
  'When it goes by itself; null: with its messages.';
comment on column memory.context_manifests.pack is
  'Lists of numbers; memory_manifests says what they mean.';
comment on column memory.context_manifests.comparison is
  'The numbers of memory_compare, where no pack is.';
