-- Up Migration

-- Evaluations of typed flags by variation, as SDKs report them. The same evaluations are in `flag_hours` too.
create table variation_hours (
  flag_id uuid not null,
  environment_id uuid not null,
  hour timestamptz not null,
  variation text not null,
  evaluations bigint not null check (evaluations > 0),
  primary key (flag_id, environment_id, hour, variation)
) with (fillfactor = 70);
create index variation_hours_to_clean_up on variation_hours (hour);

-- SDKs that report, by name and version, with the features that they know.
create table readers (
  environment_id uuid not null,
  name text not null,
  version text not null,
  knows text[] not null,
  last_seen_at timestamptz not null,
  primary key (environment_id, name, version)
) with (fillfactor = 70);
create index readers_to_clean_up on readers (last_seen_at);

grant select, insert, delete, update (evaluations) on variation_hours to usage_service;
grant select, insert, delete, update (knows, last_seen_at) on readers to usage_service;
