-- Up Migration

-- The audiences and flags to which each state refers, by key. Triggers keep the rows with every state, because several
-- statements write states. The table starts empty: earlier releases reject such states.
create table flag_references (
  environment_id uuid not null,
  flag_id uuid not null,
  kind text not null check (kind in ('audience', 'flag')),
  key text not null collate "C",
  primary key (environment_id, kind, key, flag_id)
);
create index flag_references_by_flag on flag_references (flag_id, environment_id);

grant select on flag_references to management_service;

create function has_references(content jsonb) returns boolean
language sql immutable parallel safe
return content ? 'requires' or content @?
  '$.targeting_rules[*].conditions[*] ? (exists(@.flag) || exists(@.audience))';

create function references_of(content jsonb) returns table (kind text, key text)
language sql immutable parallel safe
begin atomic
  select 'flag', jsonb_path_query(content, '$.requires[*].flag') #>> '{}'
  union
  select 'flag', jsonb_path_query(content, '$.targeting_rules[*].conditions[*].flag') #>> '{}'
  union
  select 'audience', jsonb_path_query(content, '$.targeting_rules[*].conditions[*].audience') #>> '{}';
end;

create function store_references() returns trigger
language plpgsql security definer
as $$
begin
  if tg_op <> 'INSERT' then
    delete from flag_references as reference
    where reference.flag_id = old.flag_id and reference.environment_id = old.environment_id;
  end if;
  if tg_op <> 'DELETE' then
    insert into flag_references (environment_id, flag_id, kind, key)
    select new.environment_id, new.flag_id, reference.kind, reference.key
    from references_of(new.content) as reference;
  end if;
  return null;
end
$$;

do $$
begin
  execute format('alter function store_references set search_path = %I, pg_temp', current_schema);
end
$$;

-- States without references do not call the function.
create trigger references_added after insert on flag_states
  for each row when (has_references(new.content))
  execute function store_references();
create trigger references_changed after update of content on flag_states
  for each row when (has_references(old.content) or has_references(new.content))
  execute function store_references();
create trigger references_removed after delete on flag_states
  for each row when (has_references(old.content))
  execute function store_references();

-- Requirements count like the rules. No stored state has any, so the stored sizes stay valid.
create or replace function configuration_bytes_of(content jsonb) returns integer
language sql immutable parallel safe
return octet_length(json_strip_nulls((content -> 'targeting_rules')::json)::text) - 2
  + coalesce(octet_length(json_strip_nulls((content -> 'serve')::json)::text), 0)
  + coalesce(octet_length(json_strip_nulls((content -> 'requires')::json)::text), 0);
