-- Up Migration

-- Retention of requests by day. Nothing is removed unless the operator sets a period. Building the index
-- blocks the roll-up of old hours alone, which is repeated after ten minutes.
create index request_days_to_clean_up on request_days (day);

grant delete on request_days to usage_service;
