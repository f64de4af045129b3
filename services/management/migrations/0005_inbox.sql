-- Up Migration

-- What became of the messages that were processed: a change that has come due is made once, however
-- often its message arrives. The row is written in the transaction of the change itself, so it is there
-- exactly when the change is.
create table inbox (
  -- The id of the change.
  message_id uuid primary key,
  -- What the scheduler was told, to be told again.
  outcome jsonb not null,
  processed_at timestamptz not null
);
create index inbox_by_age on inbox (processed_at);

grant select, insert, delete on inbox to management_service;
