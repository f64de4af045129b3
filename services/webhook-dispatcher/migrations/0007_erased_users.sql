-- Up Migration

-- Users whose e-mail address the operator erased. Kept until the stream can deliver no more events that contain it.
create table erased_users (
  user_id uuid primary key,
  organization_id uuid not null,
  erased_at timestamptz not null,
  -- Deliveries up to this id have been visited; null when all have been.
  visited_up_to uuid
);

grant select, insert, delete on erased_users to webhooks_service;
grant update (erased_at, visited_up_to) on erased_users to webhooks_service;
grant update (payload) on deliveries to webhooks_service;
