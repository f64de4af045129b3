-- Up Migration

-- Settings by which people find flags: labels, the responsible team, and whether the flag is still of interest.
alter table flags
  add column tags text[] not null default '{}',
  add column owner text,
  add column archived_at timestamptz;
grant update (tags, owner, archived_at) on flags to management_service;

-- A mark on which the dashboard asks before it saves. Until now, only a project's creation made a `production`
-- environment at the time of the project.
alter table environments add column caution boolean not null default false;
grant update (caution) on environments to management_service;
update environments as environment set caution = true
from projects as project
where project.id = environment.project_id
  and environment.name = 'production'
  and environment.created_at = project.created_at;
