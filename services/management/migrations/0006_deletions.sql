-- Up Migration

-- Verification of the history compares where the chains of deleted flags end with what their deletion
-- says that they were.
create index changes_of_deletions on changes (flag_id, environment_id) where action = 'deleted';
