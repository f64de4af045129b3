-- Up Migration

-- New environments in which some flags of the project have no stored state yet. A state is missing only
-- for flags after `after_key`, and equals the initial state. The last batch of flags deletes the row.
create table environment_fills (
  environment_id uuid primary key references environments on delete cascade,
  project_id uuid not null references projects on delete cascade,
  -- The user of the first history entries. The operator's id belongs to no user.
  created_by uuid not null,
  after_key text not null collate "C",
  -- Environments take turns, so that one with many flags does not delay the others.
  continued_at timestamptz not null default clock_timestamp()
);
create index environment_fills_by_project on environment_fills (project_id);

grant select, insert, delete on environment_fills to management_service;
grant update (after_key, continued_at) on environment_fills to management_service;
