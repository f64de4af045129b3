-- Up Migration

-- Schedules of flags, and the changes that they consist of.

-- The one clock of this service, whatever the clocks of its replicas say.
create function present_time() returns timestamptz language sql volatile as 'select clock_timestamp()';

create table schedules (
  -- Of version 7: the order of the ids is that of creation.
  id uuid primary key,
  organization_id uuid not null,
  project_id uuid not null,
  environment_id uuid not null,
  flag_id uuid not null,
  enable_at timestamptz,
  disable_at timestamptz,
  -- Follows from the changes' states, and is written with them, so that the list can be asked for it.
  status text not null check (status in ('pending', 'applied', 'cancelled', 'failed')),
  -- Nothing was scheduled for this flag and environment since; it is never cleaned up.
  latest boolean not null,
  created_at timestamptz not null,
  created_by uuid not null,
  finished_at timestamptz,
  constraint finished_unless_pending check ((status = 'pending') = (finished_at is null))
);
create unique index schedules_latest on schedules (flag_id, environment_id) where latest;
create index schedules_newest_first on schedules (project_id, id desc);
create index schedules_of_flag on schedules (project_id, flag_id, id desc);
create index schedules_by_status on schedules (project_id, status, id desc);
create index schedules_to_clean_up on schedules (finished_at) where not latest;

create table scheduled_changes (
  -- The id of the message too, by which management knows that it has applied the change.
  id uuid primary key,
  schedule_id uuid not null references schedules on delete cascade,
  flag_id uuid not null,
  environment_id uuid not null,
  action text not null check (action in ('enable', 'disable')),
  due_at timestamptz not null,
  -- `waiting` for the one before it, `armed` to come due, `sent` to management; the others are ends.
  state text not null
    check (state in ('waiting', 'armed', 'sent', 'applied', 'cancelled', 'failed')),
  applied_at timestamptz,
  reason text,
  constraint applied_at_a_time check ((state = 'applied') = (applied_at is not null))
);
create index scheduled_changes_of_schedule on scheduled_changes (schedule_id);
-- Claiming reads the beginning of this index, however many are pending.
create index scheduled_changes_due on scheduled_changes (due_at, id) where state = 'armed';
create index scheduled_changes_sent on scheduled_changes (due_at, id) where state = 'sent';
create index scheduled_changes_open on scheduled_changes (flag_id, environment_id)
  where state in ('waiting', 'armed', 'sent');
-- At most one change of a flag in an environment is under way.
create unique index scheduled_changes_one_at_a_time on scheduled_changes (flag_id, environment_id)
  where state in ('armed', 'sent');

grant select, insert, delete on schedules to scheduler_service;
grant update (status, latest, finished_at) on schedules to scheduler_service;
grant select, insert on scheduled_changes to scheduler_service;
grant update (state, applied_at, reason) on scheduled_changes to scheduler_service;
