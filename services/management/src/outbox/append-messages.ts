import type { Transaction } from "@halyard/postgres";
import { type OutboxMessage, rowOf } from "./outbox-message.ts";

/** Adds what is to be published to the outbox, in this order. Answers the ids of the rows. */
export async function appendMessages(
  tx: Transaction,
  messages: readonly OutboxMessage[],
  newId: () => string,
): Promise<number[]> {
  const rows = messages.map((message) => rowOf(message, newId));
  // Booleans travel as text: the client library takes an array of them for a single one.
  const inserted = await tx<{ id: number }[]>`
    insert into outbox (stream, message_id, subject, payload, tombstone)
    select message.stream, message.message_id, message.subject, message.payload,
      message.tombstone::boolean
    from unnest(
      ${rows.map((row) => row.stream)}::text[],
      ${rows.map((row) => row.message_id)}::uuid[],
      ${rows.map((row) => row.subject)}::text[],
      ${rows.map((row) => row.payload)}::text[],
      ${rows.map((row) => String(row.tombstone))}::text[]
    ) with ordinality as message (stream, message_id, subject, payload, tombstone, position)
    order by message.position
    returning id`;
  return inserted.map((row) => row.id);
}
