-- Up Migration

-- What was used, as edges told it. Nothing here is about users.

-- The one clock of this service, whatever the clocks of its replicas say.
create function present_time() returns timestamptz language sql volatile as 'select clock_timestamp()';

-- Which messages of which life of an edge have been counted. An edge numbers its messages from 1 without
-- gaps, so however many there are, what is kept is mostly one range.
create table edges (
  edge uuid primary key,
  counted int8multirange not null,
  last_counted_at timestamptz not null
);
create index edges_to_clean_up on edges (last_counted_at);

-- Requests, by the hour in which the edge admitted them. The tables that are added to many times a second
-- leave room in their pages, so that a new version of a row stands beside the old one and no index learns
-- of it.
create table request_hours (
  organization_id uuid not null,
  project_id uuid not null,
  environment_id uuid not null,
  endpoint text not null,
  hour timestamptz not null,
  requests bigint not null check (requests > 0),
  primary key (organization_id, hour, environment_id, endpoint)
) with (fillfactor = 70);
create index request_hours_to_roll_up on request_hours (hour);

-- The same by day of UTC, of hours that are long past.
create table request_days (
  organization_id uuid not null,
  project_id uuid not null,
  environment_id uuid not null,
  endpoint text not null,
  day date not null,
  requests bigint not null check (requests > 0),
  primary key (organization_id, day, environment_id, endpoint)
);

-- The sum of an organization's hours and days in a month, which every message needs to know at once. It
-- is written in the transaction that writes the hours.
create table organization_months (
  -- The first day of the month, UTC.
  month date not null,
  organization_id uuid not null,
  requests bigint not null check (requests > 0),
  primary key (month, organization_id)
) with (fillfactor = 50);

-- Answers about all flags of an environment; each counts for every flag that is older than the hour.
create table bulk_answer_hours (
  environment_id uuid not null,
  hour timestamptz not null,
  answers bigint not null check (answers > 0),
  primary key (environment_id, hour)
) with (fillfactor = 70);
create index bulk_answer_hours_to_clean_up on bulk_answer_hours (hour);

-- Evaluations of single flags, and all those of flags that are as young as the hour.
create table flag_hours (
  flag_id uuid not null,
  environment_id uuid not null,
  hour timestamptz not null,
  evaluations bigint not null check (evaluations > 0),
  primary key (flag_id, environment_id, hour)
) with (fillfactor = 70);
create index flag_hours_to_clean_up on flag_hours (hour);

-- When flags were last asked for, and keys last used. `news` says what management has still to be told:
-- that it happened for the first time, that it happened later than it knows, or nothing.
create table environments_last_seen (
  environment_id uuid primary key,
  evaluated_at timestamptz not null,
  news text not null check (news in ('first', 'later', 'none'))
) with (fillfactor = 50);
create index environments_to_tell on environments_last_seen (news) where news <> 'none';

create table flags_last_seen (
  flag_id uuid not null,
  environment_id uuid not null,
  evaluated_at timestamptz not null,
  news text not null check (news in ('first', 'later', 'none')),
  primary key (flag_id, environment_id)
) with (fillfactor = 50);
create index flags_to_tell on flags_last_seen (news) where news <> 'none';

create table keys_last_seen (
  key_id text primary key,
  used_at timestamptz not null,
  news text not null check (news in ('first', 'later', 'none'))
) with (fillfactor = 50);
create index keys_to_tell on keys_last_seen (news) where news <> 'none';

grant select, insert, delete, update (counted, last_counted_at) on edges to usage_service;
grant select, insert, delete, update (requests) on request_hours to usage_service;
-- What was used stays: days and months are added to, and never taken away.
grant select, insert, update (requests) on request_days to usage_service;
grant select, insert, update (requests) on organization_months to usage_service;
grant select, insert, delete, update (answers) on bulk_answer_hours to usage_service;
grant select, insert, delete, update (evaluations) on flag_hours to usage_service;
grant select, insert, update (evaluated_at, news) on environments_last_seen to usage_service;
grant select, insert, delete, update (evaluated_at, news) on flags_last_seen to usage_service;
grant select, insert, delete, update (used_at, news) on keys_last_seen to usage_service;
