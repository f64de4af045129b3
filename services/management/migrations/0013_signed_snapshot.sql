-- Up Migration

-- Up to this sequence of the snapshot, the signer named in the entry `complete` signed the entries of API keys. A leader
-- of an earlier release signs nothing and leaves it behind last_sequence; then the snapshot is rebuilt.
alter table relay_streams add column signed_sequence bigint;

grant update (signed_sequence) on relay_streams to management_service;
