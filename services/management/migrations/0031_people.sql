-- Up Migration

-- People: who has signed in, and which users represent them. A person has a user in each of several organizations.
create table people (
  id uuid primary key,
  created_at timestamptz not null
);

-- The account of a person at an identity provider.
create table identities (
  issuer text not null collate "C",
  subject text not null collate "C",
  person_id uuid not null references people on delete cascade,
  email text not null,
  created_at timestamptz not null,
  primary key (issuer, subject)
);
create index identities_by_person on identities (person_id);

create table passkeys (
  -- The id of the credential, in base64url.
  id text primary key collate "C",
  person_id uuid not null references people on delete cascade,
  public_key bytea not null,
  counter bigint not null,
  transports text[] not null,
  name text not null,
  created_at timestamptz not null,
  last_used_at timestamptz
);
create index passkeys_by_person on passkeys (person_id);

alter table users
  add column kind text not null default 'person' check (kind in ('person', 'service')),
  add column person_id uuid references people,
  -- True if roles bound the keys of the user. It stays true until the organization is removed.
  add column governed boolean not null default false,
  add constraint service_users_never_sign_in check (kind = 'person' or person_id is null);
-- For sign-ins by address, in all organizations. The collation ignores the case of ASCII letters only, because Unicode
-- gives different addresses the same lower case.
create index users_by_address on users (lower(email collate "C")) where deleted_at is null;
create unique index users_by_person on users (person_id, organization_id) where deleted_at is null;

-- Roles of users and of groups. Without a project, a role counts in the whole organization.
create table grants (
  id uuid primary key,
  organization_id uuid not null references organizations,
  user_id uuid references users on delete cascade,
  group_name text,
  role text not null check (role in ('viewer', 'editor', 'approver', 'admin', 'owner')),
  project_id uuid references projects,
  environment_ids uuid[],
  created_at timestamptz not null,
  check (num_nonnulls(user_id, group_name) = 1),
  check (role <> 'owner' or project_id is null),
  check (environment_ids is null or project_id is not null)
);
create index grants_by_organization on grants (organization_id, created_at, id);
create index grants_by_user on grants (user_id);
create index grants_by_project on grants (project_id);

create table sessions (
  id uuid primary key,
  secret_sha256 text not null,
  person_id uuid not null references people on delete cascade,
  via text not null check (via in ('oidc', 'passkey', 'operator')),
  groups text[] not null,
  -- The session at the provider, for its back-channel logout, and the hint of a logout that begins here.
  issuer text,
  provider_session text,
  id_token text,
  address text not null,
  user_agent text not null,
  signed_in_at timestamptz not null,
  confirmed_at timestamptz not null,
  expires_at timestamptz not null,
  idle_until timestamptz not null
);
create index sessions_by_person on sessions (person_id, signed_in_at);
create index sessions_by_end on sessions (expires_at);
create index sessions_by_provider on sessions (issuer, provider_session);

-- Codes and challenges that can be used once: of sign-in links, invitations, and sign-ins that have begun. Only the
-- digest of a code is stored.
create table one_time_codes (
  digest text primary key,
  purpose text not null
    check (purpose in ('link', 'invitation', 'oidc', 'passkey', 'logout_token')),
  -- The meaning of the code.
  content jsonb not null,
  organization_id uuid references organizations,
  expires_at timestamptz not null
);
create index one_time_codes_by_end on one_time_codes (expires_at);
create index invitations on one_time_codes (organization_id, expires_at)
  where purpose = 'invitation';

-- The newest value of each entry of the people bucket, without its version and its time. `sequence` is null until the
-- broker has stored this version. An ended session stays as a tombstone until its last possible end.
create table people_entries (
  key text primary key collate "C",
  content text not null,
  version bigint not null,
  committed_at timestamptz not null,
  sequence bigint,
  removable_at timestamptz
);
create index people_entries_unsent on people_entries (key) where sequence is null;
create index people_entries_removable on people_entries (removable_at)
  where removable_at is not null;

alter table api_keys add column scope text not null default 'write'
  check (scope in ('read', 'propose', 'write'));
alter table changes add column via text
  check (via in ('oidc', 'passkey', 'operator', 'key', 'schedule', 'change_request'));

grant select, insert, update, delete on people, identities, passkeys, grants, sessions,
  one_time_codes, people_entries to management_service;
grant insert (kind, person_id), update (kind, person_id, governed) on users to management_service;
grant insert (via) on changes to management_service;

-- As before, but an entry without an address, such as that of a grant, does not get one, and the pseudonym is the one in
-- the address of the erased user.
create or replace function erase_from_audit_log(at_most integer) returns boolean
language plpgsql security definer
as $$
declare
  subject users;
  page uuid[];
begin
  select * into subject from users
  where deleted_at is not null and erased_up_to is not null
  order by id
  limit 1
  for update skip locked;
  if not found then
    return false;
  end if;
  page := array(
    select id from changes where id > subject.erased_up_to order by id limit at_most
  );
  update changes set actor_email = subject.email
  where id = any (page) and actor_id = subject.id;
  update changes
  set state_before = state_before || jsonb_build_object('email', subject.email, 'name', null),
    state_after = state_after || jsonb_build_object('email', subject.email, 'name', null)
  where id = any (page) and user_id = subject.id and coalesce(state_before, state_after) ? 'email';
  update users
  set erased_up_to = case when cardinality(page) = at_most then page[at_most] end
  where id = subject.id;
  return true;
end
$$;

-- As in 0010: a temporary table must not be used in place of the schema's own.
do $$
begin
  execute format(
    'alter function erase_from_audit_log(integer) set search_path = %I, pg_temp',
    current_schema
  );
end
$$;
