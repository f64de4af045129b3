-- Up Migration

-- Answers to requests that carried an Idempotency-Key, encrypted with a key that only the caller has.
create table idempotency_keys (
  -- The API key's id.
  caller text not null,
  idempotency_key text not null,
  request_sha256 text not null,
  answer bytea,
  created_at timestamptz not null,
  primary key (caller, idempotency_key)
);
create index idempotency_keys_by_age on idempotency_keys (created_at);

grant select, insert, delete on idempotency_keys to webhooks_service;
grant update (request_sha256, answer, created_at) on idempotency_keys to webhooks_service;
