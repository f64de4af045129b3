-- Up Migration

-- Records which key issued a key, and which key it replaced. Both are null for keys that the operator issued, for
-- keys that are older than this migration, and for keys issued by a replica of an earlier release. There is no
-- foreign key, because ended keys are removed before the keys that they issued.
alter table api_keys add column issued_by text, add column successor_of text;
create index api_keys_by_issuer on api_keys (issued_by) where issued_by is not null;
create index api_keys_by_predecessor on api_keys (successor_of) where successor_of is not null;

-- Removed keys that connect an older key to a later one. Without them, revoking a key with all keys that it issued
-- would stop at a removed key.
create table removed_keys (
  id text primary key,
  issued_by text,
  successor_of text
);
create index removed_keys_by_issuer on removed_keys (issued_by) where issued_by is not null;
create index removed_keys_by_predecessor on removed_keys (successor_of)
  where successor_of is not null;

grant select on removed_keys to management_service;

-- One statement can remove a chain of keys, therefore the trigger runs for all removed rows together.
create function keep_removed_links() returns trigger
language plpgsql
as $$
begin
  insert into removed_keys (id, issued_by, successor_of)
  select gone.id, gone.issued_by, gone.successor_of
  from gone
  where (gone.issued_by is not null or gone.successor_of is not null)
    and (
      exists (select from api_keys as later where gone.id in (later.issued_by, later.successor_of))
      or exists (
        select from removed_keys as later where gone.id in (later.issued_by, later.successor_of)
      )
      or exists (select from gone as later where gone.id in (later.issued_by, later.successor_of))
    );
  return null;
end
$$;

create trigger keep_removed_links after delete on api_keys
referencing old table as gone
for each statement execute function keep_removed_links();

-- As in 0010: a temporary table must not be used in place of the schema's own.
do $$
begin
  execute format('alter function keep_removed_links() set search_path = %I, pg_temp', current_schema);
  revoke execute on function keep_removed_links() from public;
end
$$;
