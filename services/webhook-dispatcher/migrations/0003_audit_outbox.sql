-- Up Migration

-- Changes for the audit log, written in the transaction of the change and deleted when management has handled them.
create table audit_outbox (
  -- Of version 7: the order of the ids is that of the changes. The id of the message and of the audit entry.
  id uuid primary key,
  message jsonb not null,
  -- The stream that the message was published to, and its sequence there; null until then. The sequence is null again
  -- when the broker has lost the message.
  stream_created_at text,
  stream_sequence bigint
);

grant select, insert, delete on audit_outbox to webhooks_service;
grant update (stream_created_at, stream_sequence) on audit_outbox to webhooks_service;
