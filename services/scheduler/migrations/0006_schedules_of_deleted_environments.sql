-- Up Migration

-- Finds the schedules of deleted environments, whose projects are not known.
create index schedules_by_environment on schedules (environment_id);
