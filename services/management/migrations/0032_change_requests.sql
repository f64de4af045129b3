-- Up Migration

-- The protection of an environment, and when it began. A change of it raises the version of the environment.
alter table environments
  add column protection jsonb,
  add column protected_at timestamptz,
  add constraint protection_has_begun check ((protection is null) = (protected_at is null));
grant update (protection, protected_at) on environments to management_service;

-- Change requests of a project. A draft is made by a write that was refused.
create table change_requests (
  id uuid primary key,
  project_id uuid not null references projects,
  organization_id uuid not null references organizations,
  title text not null,
  reason text not null,
  status text not null
    check (status in ('draft', 'open', 'approved', 'applied', 'rejected', 'withdrawn', 'stale')),
  -- The changes with the values before and after.
  changes jsonb not null,
  -- What the changes refer to, by name, each with its version.
  base jsonb not null,
  -- SHA-256 of everything that an approval covers.
  content_hash text not null,
  -- The environments whose answers the changes affect.
  environment_ids uuid[] not null,
  approvals jsonb not null,
  apply_at timestamptz,
  created_by uuid not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  -- The users who cannot approve: author, editors, and those who issued their keys.
  contributors uuid[] not null,
  -- Identifies what a refused write proposed, so that a repeated write makes one request of its author.
  draft_sha256 text,
  applied_at timestamptz,
  cause_id uuid,
  -- The history entries of the applied states, to which a rollback may lead.
  applied_entries uuid[] not null default '{}',
  closed_by uuid,
  comment text,
  bypass_reason text
);
create index change_requests_of_project on change_requests (project_id, id desc);
create index change_requests_due on change_requests (apply_at)
  where status = 'approved' and apply_at is not null;
create unique index change_requests_by_write on change_requests (project_id, created_by, draft_sha256)
  where status in ('draft', 'open', 'approved');
create index change_requests_by_entry on change_requests using gin (applied_entries);
grant select, insert, update, delete on change_requests to management_service;

-- The change request whose application made an entry of the audit log.
alter table changes add column cause_id uuid;
grant insert (cause_id) on changes to management_service;
