-- Up Migration

-- The users who can know a key's secret beside its own user: the person who issued it, or the user and the issuers of the
-- key that did. It is stored with the key, because keys are removed before the keys that they issued.
alter table api_keys add column issuers uuid[] not null default '{}';

with recursive known (id, issuer) as (
  select key.id, key.issued_by from api_keys as key where key.issued_by is not null
  union
  select known.id, key.issued_by
  from known join api_keys as key on key.id = known.issuer
  where key.issued_by is not null
)
update api_keys as key
set issuers = array(
  select distinct issuing.user_id
  from known join api_keys as issuing on issuing.id = known.issuer
  where known.id = key.id
)
where key.issued_by is not null;
