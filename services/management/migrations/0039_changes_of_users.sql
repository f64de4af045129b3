-- Without a transaction

-- Changes of users are in the audit logs of projects too. The other entries of an organization, such as sign-ins, are far
-- more.
drop index concurrently if exists changes_of_users_newest_first;
create index concurrently changes_of_users_newest_first on changes (organization_id, sequence desc)
  where action in ('user_created', 'user_changed', 'user_deleted');
drop index concurrently if exists changes_of_users_by_actor;
create index concurrently changes_of_users_by_actor on changes (organization_id, actor_id, sequence desc)
  where action in ('user_created', 'user_changed', 'user_deleted');
