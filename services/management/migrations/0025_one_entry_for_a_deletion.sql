-- Without a transaction

-- The deletion of a flag has one entry, and streams of keys with `environment_only` read it as a change of the list.
drop index concurrently if exists new_changes_of_flag_list;
create index concurrently new_changes_of_flag_list on changes (project_id, sequence desc)
  where action in ('created', 'settings', 'deleted');
drop index concurrently if exists changes_of_flag_list;
alter index new_changes_of_flag_list rename to changes_of_flag_list;
