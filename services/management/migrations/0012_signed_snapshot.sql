-- Up Migration

-- The snapshot's last sequence up to which the entries of API keys are signed as its entry `complete` says. A leader
-- of an earlier release signs nothing and leaves it behind last_sequence; then the snapshot is rebuilt.
alter table relay_streams add column signed_sequence bigint;

grant update (signed_sequence) on relay_streams to management_runtime;
