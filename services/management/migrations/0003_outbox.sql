-- Up Migration

-- What is to be published, written in the transaction of the change itself. Ids are drawn under the
-- lock of the flag, key or organization concerned, so per entity their order is the commit order.
create table outbox (
  id bigint generated always as identity primary key,
  stream text not null check (stream in ('events', 'snapshot')),
  message_id uuid not null,
  -- The event's subject, or the key of the entry in the snapshot.
  subject text not null,
  payload text not null,
  -- The payload is the deletion of an entry, which leaves the snapshot itself after a time.
  tombstone boolean not null default false,
  created_at timestamptz not null default now(),
  sent_at timestamptz,
  -- Where the message stands in its stream; null for one that a newer value of its entry overtook.
  stream_sequence bigint
);
create index outbox_unsent on outbox (stream, id) where sent_at is null;
create index outbox_sent on outbox (stream, stream_sequence) where sent_at is not null;
create index outbox_sent_at on outbox (sent_at) where sent_at is not null;
create unique index outbox_message on outbox (message_id) where stream = 'events';

-- What the relay knows of each stream. One row a stream; it belongs to the leader of the relay.
create table relay_streams (
  stream text primary key,
  -- A stream that was deleted and made again has another time.
  stream_created_at text not null,
  -- The last sequence whose outcome is recorded in the outbox.
  last_sequence bigint not null,
  -- The snapshot's sequence at the end of its last full write; a stream that ends before is rebuilt.
  base_sequence bigint not null default 0
);

-- Which process publishes. A lease, not a session lock: a stopped process cannot hold it.
create table leases (
  name text primary key,
  holder uuid not null,
  expires_at timestamptz not null
);

-- Answers to requests that carried an Idempotency-Key, encrypted with a key that only the caller has.
create table idempotency_keys (
  -- The API key's id, or `operator`.
  caller text not null,
  idempotency_key text not null,
  request_sha256 text not null,
  answer bytea,
  created_at timestamptz not null,
  primary key (caller, idempotency_key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);

grant select, insert, delete on outbox to management_service;
grant update (sent_at, stream_sequence) on outbox to management_service;
grant select, insert on relay_streams, leases to management_service;
grant update (stream_created_at, last_sequence, base_sequence) on relay_streams to management_service;
grant update (holder, expires_at) on leases to management_service;
grant select, insert, delete on idempotency_keys to management_service;
grant update (request_sha256, answer, created_at) on idempotency_keys to management_service;
