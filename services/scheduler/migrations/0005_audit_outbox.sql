-- Up Migration

-- Changes for the audit log, written in the transaction of the change and deleted once they are published.
create table audit_outbox (
  -- Of version 7: the order of the ids is that of the changes. The id of the message and of the audit entry.
  id uuid primary key,
  message jsonb not null
);

grant select, insert, delete on audit_outbox to scheduler_runtime;
