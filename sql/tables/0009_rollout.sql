-- Rollout of the memory in stages: the stage of an agent. Comparisons of the old and the new context are beside the
-- manifests, in context_manifests.

-- Every decision stays; the newest of an agent applies. Users may read the current stage, not who set it.
create table memory.rollouts (
  agent_id text        not null check (
    octet_length(agent_id) between 1 and 512 and agent_id !~ '[\u0001-\u001f\u007f-\u009f]'),
  version  bigint      not null,
  stage    text        not null check (stage in ('off', 'parallel', '25', '15', '10', '5', 'on')),
  share    float8      not null default 1 check (share between 0 and 1),
  rest     text        not null default 'off' check (rest in ('off', 'parallel', '25', '15', '10', '5', 'on')),
  set_by   text        not null check (set_by <> ''),
  set_at   timestamptz not null default clock_timestamp(),
  primary key (agent_id, version)
);

comment on table memory.rollouts is
  'Reference table. Which context the users of an agent receive: a share of them that of stage, the others that of rest.';
