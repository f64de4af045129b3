-- Up Migration

-- Flags with values other than on and off. The variations are a list of `{ key, json, name? }`, where `json` is the text
-- of the value: `jsonb` would reorder the members of an object and rewrite its numbers.
alter table flags
  add column value_type text not null default 'boolean',
  add column variations jsonb,
  -- The entries of the flag have at least this version, and this time, in every environment.
  add column variations_version bigint,
  add column variations_changed_at timestamptz,
  -- Size of the values as JSON: of all of them, which count in each environment, and of the largest one.
  add column value_bytes integer not null default 0,
  add column largest_value_bytes integer not null default 0,
  add constraint typed_flags_have_variations
    check ((value_type = 'boolean') = (variations is null));
grant update (variations, variations_version, variations_changed_at, value_bytes, largest_value_bytes)
  on flags to management_service;

-- The values of a flag count in every environment. The column repeats their size, because a deleted flag is gone before
-- its states.
alter table flag_states add column value_bytes integer not null default 0;
grant update (value_bytes) on flag_states to management_service;

-- What the users of a typed flag get counts like the rules: splits have ranges. Boolean flags have no such member, so the
-- stored sizes stay valid.
create or replace function configuration_bytes_of(content jsonb) returns integer
language sql immutable parallel safe
return octet_length(json_strip_nulls((content -> 'targeting_rules')::json)::text) - 2
  + coalesce(octet_length(json_strip_nulls((content -> 'serve')::json)::text), 0);

create or replace function add_configuration_bytes() returns trigger
language plpgsql security definer
as $$
begin
  insert into configuration_sizes as size (organization_id, bytes)
  select project.organization_id,
    coalesce(new.configuration_bytes, 0) + coalesce(new.value_bytes, 0)
      - coalesce(old.configuration_bytes, 0) - coalesce(old.value_bytes, 0)
  from environments as environment
  join projects as project on project.id = environment.project_id
  where environment.id = coalesce(new.environment_id, old.environment_id)
  on conflict (organization_id) do update set bytes = size.bytes + excluded.bytes;
  return null;
end
$$;

do $$
begin
  execute format('alter function add_configuration_bytes set search_path = %I, pg_temp', current_schema);
end
$$;

drop trigger configuration_added on flag_states;
drop trigger configuration_changed on flag_states;
drop trigger configuration_removed on flag_states;
create trigger configuration_added after insert on flag_states
  for each row when (new.configuration_bytes + new.value_bytes > 0)
  execute function add_configuration_bytes();
create trigger configuration_changed after update on flag_states
  for each row when (
    new.configuration_bytes + new.value_bytes <> old.configuration_bytes + old.value_bytes
  )
  execute function add_configuration_bytes();
create trigger configuration_removed after delete on flag_states
  for each row when (old.configuration_bytes + old.value_bytes > 0)
  execute function add_configuration_bytes();
