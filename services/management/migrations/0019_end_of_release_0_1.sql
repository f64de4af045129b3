-- Up Migration

-- A leader signs every entry that it publishes, so the signature of `complete` covers the whole snapshot.
alter table relay_streams drop column signed_sequence;

-- The snapshot moves to a new bucket, so its former position means nothing.
delete from relay_streams where stream = 'snapshot';
