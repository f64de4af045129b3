-- Up Migration

-- The size of the rules of each organization, over all its environments, which its plan limits. Triggers keep the sum
-- with every state, also when a cascade, a batch or a process of an earlier release writes it.

-- The bytes of the rules as JSON without spaces between tokens, and without the brackets of the list: no rules have no
-- bytes. `json_strip_nulls` omits these spaces, and rules contain no null. A function, because some versions of PostgreSQL
-- do not declare `json_strip_nulls` immutable. Usage metering measures the same (`configuration-sizes.ts`).
create function configuration_bytes_of(content jsonb) returns integer
language sql immutable parallel safe
return octet_length(json_strip_nulls((content -> 'targeting_rules')::json)::text) - 2;

-- The table is rewritten once, and is locked meanwhile.
alter table flag_states
  add column configuration_bytes integer not null
  generated always as (configuration_bytes_of(content)) stored;

-- The row of an organization is locked last, after projects, environments and flags, so that no two transactions wait
-- for each other. For the same reason it is not a column of `organizations` and has no foreign key. It stays after the
-- deletion of its organization, like the organization's own row.
create table configuration_sizes (
  organization_id uuid primary key,
  bytes bigint not null
);
insert into configuration_sizes (organization_id, bytes)
select project.organization_id, sum(state.configuration_bytes)
from flag_states as state
join flags as flag on flag.id = state.flag_id
join projects as project on project.id = flag.project_id
group by project.organization_id;

grant select on configuration_sizes to management_service;
-- A row lock needs the right to update some column.
grant update (organization_id) on configuration_sizes to management_service;

-- Adds the difference of a state to the sum of its organization. The environment leads to the organization, because a
-- deleted flag is gone before its states.
create function add_configuration_bytes() returns trigger
language plpgsql security definer
as $$
begin
  insert into configuration_sizes as size (organization_id, bytes)
  select project.organization_id,
    coalesce(new.configuration_bytes, 0) - coalesce(old.configuration_bytes, 0)
  from environments as environment
  join projects as project on project.id = environment.project_id
  where environment.id = coalesce(new.environment_id, old.environment_id)
  on conflict (organization_id) do update set bytes = size.bytes + excluded.bytes;
  return null;
end
$$;

-- Most changes leave the rules as they are, and do not lock the sum.
create trigger configuration_added after insert on flag_states
  for each row when (new.configuration_bytes > 0)
  execute function add_configuration_bytes();
create trigger configuration_changed after update on flag_states
  for each row when (new.configuration_bytes <> old.configuration_bytes)
  execute function add_configuration_bytes();
create trigger configuration_removed after delete on flag_states
  for each row when (old.configuration_bytes > 0)
  execute function add_configuration_bytes();

do $$
begin
  execute format('alter function add_configuration_bytes set search_path = %I, pg_temp', current_schema);
end
$$;
