-- Up Migration

-- The queue of an unsent row; null when it is sent. A queue has the unsent rows of one organization and one kind:
-- events, flags of the snapshot, or other entries of the snapshot, such as API keys. The relay takes rows from all
-- queues of a kind in turn. A function and not a column, because replicas of an earlier release write rows, too.
create function outbox_queue(sent_at timestamptz, stream text, subject text, payload text)
returns text
language sql immutable parallel safe
return case
  when sent_at is not null then null
  when stream = 'events' then 'events ' || coalesce(payload::jsonb ->> 'organization_id', '')
  when split_part(subject, '.', 2) = 'flag' then 'flags ' || split_part(subject, '.', 1)
  else 'keys ' || split_part(subject, '.', 1)
end;

create index outbox_queues on outbox (
  (outbox_queue(sent_at, stream, subject, payload) collate "C"), id
) where (outbox_queue(sent_at, stream, subject, payload) collate "C") is not null;

-- Values without a recorded position: unsent, or overtaken by a newer value. A new leader compares them with the
-- entries that a former leader published and did not record.
create index outbox_unrecorded on outbox (subject)
  where stream = 'snapshot' and stream_sequence is null;
