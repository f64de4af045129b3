-- Up Migration

-- Streams of keys with `environment_only` read the newest of these entries in each round. Without the index, a project
-- whose flags were only switched for a long time would be read back to its last new flag.
create index changes_of_flag_list on changes (project_id, sequence desc)
  where action in ('created', 'settings');
