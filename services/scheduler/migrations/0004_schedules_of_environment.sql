-- Up Migration

-- A key of one environment sees that environment's schedules alone. Without this a page of a few of them,
-- or of none, would be looked for among all schedules of the project.
create index schedules_of_environment on schedules (project_id, environment_id, id desc);
