-- Up Migration

-- Counts the changes of a webhook, so that a request can be conditional on the version that a person saw.
alter table webhooks add column version integer not null default 1;

-- A trigger counts, so that changes by processes of the previous release count too. Every change sets updated_at, even if
-- two changes have the same time. The re-encryption of a secret and the end of an overlap do not set it, and do not count.
create function count_change() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  return new;
end
$$;
create trigger webhooks_count_changes before update of updated_at on webhooks
  for each row execute function count_change();
