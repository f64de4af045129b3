-- Up Migration

-- The foreign key rejected the use of a key that is recorded while the key is removed, and could reject the removal.
-- Without it, a row that is written in that moment stays and is never read, as in flags_last_seen.
alter table keys_last_seen drop constraint keys_last_seen_key_id_fkey;
