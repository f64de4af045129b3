-- Up Migration

-- The sequence of the last history entry before the protection of an environment began. Entries are compared with it, and
-- not by their times, because processes read their clocks before they wait for locks.
alter table environments add column protected_after bigint;
update environments
set protected_after = (select coalesce(max(sequence), 0) from history)
where protection is not null;
grant update (protected_after) on environments to management_service;
