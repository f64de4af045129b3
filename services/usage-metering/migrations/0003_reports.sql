-- Up Migration

-- Reports of evaluations that applications made, which have been counted. A report that arrives again adds nothing.
create table counted_reports (
  report_id uuid primary key,
  counted_at timestamptz not null
);
create index counted_reports_to_clean_up on counted_reports (counted_at);

-- The clean-up locks rows, which needs the right to update a column.
grant select, insert, delete, update (counted_at) on counted_reports to usage_service;
