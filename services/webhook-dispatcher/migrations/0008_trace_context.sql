-- Up Migration

-- True: the requests to the target have the headers of W3C Trace Context.
alter table webhooks add column trace_context boolean not null default false;
grant update (trace_context) on webhooks to webhooks_service;

-- Context of the span that received the event. Null without traces.
alter table deliveries
  add column traceparent text,
  add column tracestate text;
