-- Up Migration

-- Counter of the steps of a change request, which orders its events.
alter table change_requests add column version integer not null default 1;
