import { signComplete } from "@halyard/api-keys";
import { completeKey, parseEntryKey, snapshotBucket } from "@halyard/contracts";
import { connectNats, deleteStream, ensureSnapshot, publishFenced } from "@halyard/jetstream";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { pino } from "pino";
import { benchSigner } from "./signing.ts";
import type { SnapshotContent } from "./snapshot-content.ts";

const batchSize = 1_000;

/** Writes the snapshot bucket without management. */
export async function writeSnapshot(natsUrl: string, content: SnapshotContent): Promise<void> {
  const logger = pino({ level: "silent" });
  const connection = await connectNats({ nats: { url: natsUrl }, name: "bench", logger });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const client = jetstream(connection);
    await deleteStream(manager, snapshotBucket.streamName);
    let { lastSequence } = await ensureSnapshot(manager, 1);
    for (let from = 0; from < content.records.length; from += batchSize) {
      const first = lastSequence + 1;
      const batch = await Promise.all(
        content.records.slice(from, from + batchSize).map(async ({ key, value }, index) => ({
          subject: snapshotBucket.subjectPrefix + key,
          payload: await payloadOf(key, value, first + index),
        })),
      );
      const result = await publishFenced(client, batch, lastSequence);
      if (result.failure !== undefined)
        throw new Error("the snapshot could not be written", { cause: result.failure });
      lastSequence += batch.length;
    }
  } finally {
    await connection.close();
  }
}

async function payloadOf(key: string, value: string, sequence: number): Promise<string> {
  if (key === completeKey) return signComplete(benchSigner, JSON.parse(value), sequence);
  return parseEntryKey(key)?.kind === "key" ? benchSigner.sign(key, value) : value;
}
