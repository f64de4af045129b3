-- Up Migration

-- Release 0.1 recorded an outcome and armed the next change in two statements. Arms changes after a crash in between.
update scheduled_changes as change
set state = 'armed'
where state = 'waiting'
  and not exists (
    select from scheduled_changes as other
    where other.schedule_id = change.schedule_id and other.state in ('armed', 'sent')
  );
