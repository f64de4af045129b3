-- Up Migration

-- The trigger counted the changes by processes of release 0.1. Statements count since.
drop trigger webhooks_count_changes on webhooks;
drop function count_change();

grant update (version) on webhooks to webhooks_service;
