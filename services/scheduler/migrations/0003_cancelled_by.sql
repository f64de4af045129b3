-- Up Migration

-- Who cleared or replaced a schedule. Null where nobody did: it was not cancelled, or its flag was deleted;
-- and where that was before it was written down.
alter table schedules add column cancelled_by uuid;

grant update (cancelled_by) on schedules to scheduler_service;
