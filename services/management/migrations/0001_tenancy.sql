-- Up Migration

-- Who a flag belongs to: organization, users, projects, environments, API keys.
-- Names carry the schema's role in grants at the end; no role but the owner may change a table.

create table organizations (
  id uuid primary key,
  name text not null,
  plan text not null,
  -- Raised by every change to the organization or to the number of its projects.
  version bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null
);

create table users (
  id uuid primary key,
  organization_id uuid not null references organizations,
  email text not null,
  name text,
  created_at timestamptz not null
);
create index users_by_organization on users (organization_id, created_at, id);

create table projects (
  id uuid primary key,
  organization_id uuid not null references organizations,
  name text not null,
  created_at timestamptz not null,
  constraint project_name_taken unique (organization_id, name)
);

create table environments (
  id uuid primary key,
  project_id uuid not null references projects,
  name text not null,
  created_at timestamptz not null,
  constraint environment_name_taken unique (project_id, name)
);

create table api_keys (
  -- The 16 characters by which the key is looked up; they are part of the key itself.
  id text primary key,
  secret_sha256 text not null,
  kind text not null check (kind in ('client', 'server')),
  name text not null,
  environment_id uuid not null references environments,
  user_id uuid not null references users,
  environment_only boolean not null,
  version bigint not null,
  created_at timestamptz not null,
  expires_at timestamptz,
  revoked_at timestamptz
);
create index api_keys_by_environment on api_keys (environment_id, created_at, id);

grant select, insert on organizations, users, projects, environments, api_keys to management_service;
grant update (name, plan, version, updated_at) on organizations to management_service;
-- A row lock needs the right to update some column; the projects' names are never changed.
grant update (name) on projects to management_service;
grant update (version, expires_at, revoked_at) on api_keys to management_service;
