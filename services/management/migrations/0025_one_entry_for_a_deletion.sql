-- Up Migration

-- The deletion of a flag has one entry, and streams of keys with `environment_only` read it as a change of the list.
drop index changes_of_flag_list;
create index changes_of_flag_list on changes (project_id, sequence desc)
  where action in ('created', 'settings', 'deleted');
