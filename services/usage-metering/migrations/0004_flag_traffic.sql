-- Up Migration

-- Evaluations of the flag alone that were ever counted. Counting updates the row anyway. A report of all flags of a
-- project reads this number, instead of up to 744 hours of each flag. It begins at 0, because only differences matter.
alter table flags_last_seen add column evaluations bigint not null default 0;
create index flags_of_environments on flags_last_seen (environment_id);

-- The same number at the beginning of a day in UTC. The difference is the evaluations since then. The number is
-- negative if hours of the day were counted before this migration.
create table flag_baselines (
  environment_id uuid not null,
  day date not null,
  flag_id uuid not null,
  evaluations bigint not null,
  primary key (environment_id, day, flag_id)
);
create index flag_baselines_to_clean_up on flag_baselines (day);

grant update (evaluations) on flags_last_seen to usage_service;
-- The clean-up locks rows, which needs the right to update a column.
grant select, insert, delete, update (evaluations) on flag_baselines to usage_service;
