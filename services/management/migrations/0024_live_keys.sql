-- Up Migration

-- Issuing counts the keys of an environment that work. The condition leaves out revoked keys, and the second column
-- expired ones, so keys that have ended do not make the count slower.
create index api_keys_that_work on api_keys (environment_id, coalesce(expires_at, 'infinity'))
  where revoked_at is null;
