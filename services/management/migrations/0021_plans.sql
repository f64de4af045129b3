-- Up Migration

-- The plans of the installation, in one row: the limits of each plan by its name. The leader of the relay writes the
-- row. `json` keeps the order in which the plans are configured.
create table plans (
  only_row boolean primary key default true check (only_row),
  limits json not null,
  version bigint not null,
  updated_at timestamptz not null
);
grant select, insert on plans to management_service;
-- A row lock needs the right to update some column.
grant update (limits, version, updated_at) on plans to management_service;

-- Readers resolve the limits of an organization from the entry `plans`.
alter table organizations drop column limits;
