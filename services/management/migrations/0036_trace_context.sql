-- Up Migration

-- The W3C trace context of the transaction that wrote the row. Null without traces.
alter table outbox
  add column traceparent text,
  add column tracestate text;
