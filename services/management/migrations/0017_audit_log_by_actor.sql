-- Up Migration

-- Without it, the changes of a user with few of them are found by reading the whole audit log: 66 ms among 100,000
-- entries, instead of 1 ms.
create index changes_of_actor_newest_first on changes (project_id, actor_id, sequence desc);
-- The same for changes of the organization's users.
create index changes_of_organization_by_actor on changes (organization_id, actor_id, sequence desc)
  where organization_id is not null;
