-- Up Migration

-- Filters of lists of flags use these settings.
alter table flags
  add column tags text[] not null default '{}',
  add column owner text,
  add column archived_at timestamptz;
grant update (tags, owner, archived_at) on flags to management_service;

-- The dashboard asks for confirmation before it saves a change in an environment with caution. The environment
-- `production` of a new project has it from now on, so the existing ones that were created with their project get it.
alter table environments add column caution boolean not null default false;
grant update (caution) on environments to management_service;
update environments as environment set caution = true
from projects as project
where project.id = environment.project_id
  and environment.name = 'production'
  and environment.created_at = project.created_at;
