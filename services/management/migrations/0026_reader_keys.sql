-- Up Migration

-- A reader key is for an application on a server: it reads values and rules, and manages nothing.
alter table api_keys
  drop constraint api_keys_kind_check,
  add constraint api_keys_kind_check check (kind in ('client', 'reader', 'server')),
  add constraint reader_keys_are_of_one_environment check (kind <> 'reader' or environment_only);
