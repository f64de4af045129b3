-- Up Migration

-- When keys and flags were last used, as other services tell it. These instants change all the time, and
-- what they are about does not: so they stand in narrow tables of their own, with room in each page for
-- the next instant, and a new one leaves the rows of keys and flags alone.
create table keys_last_seen (
  key_id text primary key references api_keys,
  used_at timestamptz not null
) with (fillfactor = 50);

-- Answers about all flags of an environment.
create table environments_last_seen (
  environment_id uuid primary key references environments,
  evaluated_at timestamptz not null
) with (fillfactor = 50);

-- Flags that were asked for by themselves, or were so young that answers about all are told for each.
-- Without a foreign key, whose check would wait for whoever changes a flag, with locks that the deletion
-- of another may wait for. A row that is written at the very moment at which its flag is deleted stays,
-- and is never read.
create table flags_last_seen (
  flag_id uuid not null,
  environment_id uuid not null,
  evaluated_at timestamptz not null,
  primary key (flag_id, environment_id)
) with (fillfactor = 50);

grant select, insert on keys_last_seen, environments_last_seen, flags_last_seen to management_service;
grant update (used_at) on keys_last_seen to management_service;
grant delete on flags_last_seen to management_service;
grant update (evaluated_at) on environments_last_seen, flags_last_seen to management_service;
