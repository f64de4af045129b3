-- Up Migration

create table flags (
  id uuid primary key,
  project_id uuid not null references projects,
  key text not null collate "C",
  name text not null,
  description text not null,
  type text not null,
  -- Raised by every change to the flag or to one of its states.
  version bigint not null,
  -- The timestamp of the flag's newest event; the next one is later by at least a millisecond.
  last_event_at timestamptz not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint flag_key_taken unique (project_id, key)
);

create table flag_states (
  flag_id uuid not null references flags on delete cascade,
  environment_id uuid not null references environments,
  enabled boolean not null,
  rollout_percentage smallint not null check (rollout_percentage between 0 and 100),
  targeting_rules jsonb not null,
  -- The flag's version as of this state's own last change.
  version bigint not null,
  updated_at timestamptz not null,
  primary key (flag_id, environment_id)
);
create index flag_states_by_environment on flag_states (environment_id);

-- Append-only: what a flag's state was, from each change on. It outlives the flag.
create table history (
  id uuid primary key,
  flag_id uuid not null,
  environment_id uuid not null,
  sequence bigint generated always as identity,
  enabled boolean not null,
  rollout_percentage smallint not null,
  targeting_rules jsonb not null,
  change_type text not null check (change_type in ('manual', 'scheduled', 'rollback')),
  changed_by uuid not null,
  changed_at timestamptz not null
);
create index history_newest_first on history (flag_id, environment_id, sequence desc);

-- Append-only: every change of a flag, an environment or an API key, with what was before and after.
-- It outlives the flag.
create table changes (
  id uuid primary key,
  sequence bigint generated always as identity,
  project_id uuid not null,
  environment_id uuid,
  -- What was changed: a flag, a key, or else the environment.
  flag_id uuid,
  flag_key text,
  key_id text,
  action text not null,
  cause text not null check (cause in ('manual', 'scheduled', 'rollback')),
  actor_id uuid not null,
  actor_email text not null,
  state_before jsonb,
  state_after jsonb,
  changed_at timestamptz not null,
  constraint action_fits_subject check (
    case
      when flag_id is not null
        then flag_key is not null and action in ('created', 'settings', 'state', 'deleted')
      when key_id is not null then action in ('key_issued', 'key_rotated', 'key_revoked')
      else action = 'environment_created'
    end
  )
);
create index changes_newest_first on changes (project_id, sequence desc);
create index changes_of_flag_newest_first on changes (project_id, flag_id, sequence desc)
  where flag_id is not null;

grant select, insert, delete on flags to management_service;
grant update (name, description, type, version, last_event_at, updated_at) on flags to management_service;
grant select, insert on flag_states to management_service;
grant update (enabled, rollout_percentage, targeting_rules, version, updated_at) on flag_states to management_service;
grant select, insert on history, changes to management_service;
