-- Up Migration

-- The limits that an organization's entry was last given. They hold on when its plan is not configured
-- any more, and show whose entries a change of the plans concerns. Null until they are first recorded.
alter table organizations add column limits jsonb;
grant update (limits) on organizations to management_service;
