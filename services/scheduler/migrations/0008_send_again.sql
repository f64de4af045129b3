-- Up Migration

-- A sent change without an outcome is due again at `send_again_at`.
alter table scheduled_changes add column send_count integer not null default 0;
alter table scheduled_changes add column send_again_at timestamptz;
grant update (send_count, send_again_at) on scheduled_changes to scheduler_service;

-- Claiming reads the beginning of this index, no matter how many changes are pending.
drop index scheduled_changes_due;
create index scheduled_changes_due on scheduled_changes (coalesce(send_again_at, due_at), id)
  where state in ('armed', 'sent');

drop index scheduled_changes_sent;
create index scheduled_changes_overdue on scheduled_changes (due_at)
  where state in ('armed', 'sent');
