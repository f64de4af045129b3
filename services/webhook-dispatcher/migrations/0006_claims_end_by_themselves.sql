-- Up Migration

-- A claim moves the next attempt into the future: a delivery whose claim has expired is due again by itself. The
-- dispatchers of the previous release must be stopped before this migration, because they write `claimed_until`.
alter table deliveries drop constraint waits_for_a_time;

update lanes
set due_at = least(lanes.due_at, claims.first_end)
from (
  select webhook_id, min(claimed_until) as first_end
  from deliveries
  where status = 'delivering'
  group by webhook_id
) as claims
where claims.webhook_id = lanes.webhook_id;
update deliveries set next_attempt_at = claimed_until where status = 'delivering';
-- A deleted webhook has no lane, so no dispatcher would find these claims.
update deliveries
set status = 'cancelled', next_attempt_at = null, finished_at = now()
where status = 'delivering' and not exists (select from webhooks where id = deliveries.webhook_id);

-- Also drops the index and the constraint of the column.
alter table deliveries drop column claimed_until;
alter table deliveries add constraint due_while_open
  check ((status in ('pending', 'retrying', 'delivering')) = (next_attempt_at is not null));
