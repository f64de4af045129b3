-- Up Migration

-- Requests that have not ended: counted for each project and author, and compared with the current values.
create index change_requests_pending on change_requests (project_id, created_by)
  where status in ('draft', 'open', 'approved', 'stale');

-- Retention removes requests that ended long ago.
create index change_requests_ended on change_requests (updated_at)
  where status in ('applied', 'rejected', 'withdrawn');
