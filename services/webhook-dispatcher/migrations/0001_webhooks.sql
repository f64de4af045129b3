-- Up Migration

-- Webhooks, what is to be delivered to them, and every attempt to do so.

create table webhooks (
  id uuid primary key,
  organization_id uuid not null,
  project_id uuid not null,
  name text not null,
  url text not null,
  events text[] not null,
  enabled boolean not null,
  -- Encrypted; the key's id says with which key. Null: deliveries are not signed.
  secret bytea,
  secret_key_id text,
  -- The one before, while deliveries are signed with both.
  previous_secret bytea,
  previous_secret_key_id text,
  previous_secret_ends_at timestamptz,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint webhook_name_taken unique (project_id, name),
  constraint secret_with_its_key check ((secret is null) = (secret_key_id is null)),
  constraint previous_secret_with_its_key check (
    (previous_secret is null) = (previous_secret_key_id is null)
    and (previous_secret is null) = (previous_secret_ends_at is null)
  )
);
create index webhooks_by_secret_key on webhooks (secret_key_id) where secret_key_id is not null;
create index webhooks_by_previous_key on webhooks (previous_secret_key_id)
  where previous_secret_key_id is not null;

-- When each webhook has something due, in one row of its own: so what is due is found by webhook, and a
-- backlog of one costs the others nothing.
create table lanes (
  webhook_id uuid primary key references webhooks on delete cascade,
  organization_id uuid not null,
  -- Not later than the next attempt of its deliveries; null when there is none to make.
  due_at timestamptz,
  -- Its target's last attempt took seconds, or ran into the time-out.
  slow boolean not null default false
);
create index lanes_due on lanes (slow, due_at) where due_at is not null;

-- Events that deliveries were made of. Written with them, so that an event that comes again makes none.
create table inbox (
  event_id uuid primary key,
  -- The last time that it came.
  received_at timestamptz not null
);
create index inbox_by_age on inbox (received_at);

create table deliveries (
  -- Of version 7: the order of the ids is that of creation.
  id uuid primary key,
  webhook_id uuid not null,
  organization_id uuid not null,
  project_id uuid not null,
  event_id uuid not null,
  event text not null,
  -- The very text that is sent and signed, the same in every attempt.
  payload text not null,
  status text not null
    check (status in ('pending', 'delivering', 'retrying', 'delivered', 'failed', 'cancelled')),
  attempts_made integer not null default 0,
  -- How many of them the event itself brought about: these have retries.
  series_attempts integer not null default 0,
  -- A person asked for the attempt that waits or is under way, after the delivery had ended: it has no
  -- retries.
  redelivery boolean not null default false,
  -- Every attempt so far was answered 410.
  gone_only boolean not null default true,
  created_at timestamptz not null,
  next_attempt_at timestamptz,
  delivered_at timestamptz,
  finished_at timestamptz,
  -- By which claim the attempt is made, and until when it may: a claim of a dead process comes free.
  claimed_by uuid,
  claimed_until timestamptz,
  constraint one_delivery_per_event unique (webhook_id, event_id),
  constraint waits_for_a_time check ((status in ('pending', 'retrying')) = (next_attempt_at is not null)),
  constraint claimed_while_delivering check ((status = 'delivering') = (claimed_until is not null))
);
create index deliveries_newest_first on deliveries (webhook_id, id desc);
create index deliveries_by_status on deliveries (webhook_id, status, id desc);
-- Claiming reads the beginning of one webhook's part of this index.
create index deliveries_due on deliveries (webhook_id, next_attempt_at, id)
  where next_attempt_at is not null;
-- The planner would reckon with what a webhook has on average. Where most have few deliveries waiting it
-- would read and sort all of the one that has a hundred thousand. So it is told to reckon with as many as
-- the webhook with the most has: it takes the share of the most common one when that is the smaller guess.
alter table deliveries alter column webhook_id set (n_distinct = 1);
create index deliveries_claimed on deliveries (claimed_until) where claimed_until is not null;
create index deliveries_to_clean_up on deliveries (finished_at) where finished_at is not null;

create table attempts (
  id uuid primary key,
  delivery_id uuid not null references deliveries on delete cascade,
  attempted_at timestamptz not null,
  -- Null when there was no answer.
  status_code integer,
  duration_ms integer not null,
  error text,
  response_body text
);
create index attempts_of_delivery on attempts (delivery_id, id);

grant select, insert, delete on webhooks, lanes, inbox, deliveries, attempts to webhooks_service;
grant update (name, url, events, enabled, secret, secret_key_id, previous_secret,
  previous_secret_key_id, previous_secret_ends_at, updated_at) on webhooks to webhooks_service;
grant update (due_at, slow) on lanes to webhooks_service;
grant update (received_at) on inbox to webhooks_service;
grant update (status, attempts_made, series_attempts, redelivery, gone_only, next_attempt_at,
  delivered_at, finished_at, claimed_by, claimed_until) on deliveries to webhooks_service;
