import { connectNats, deleteStream, type ensurePeople, publishFenced } from "@halyard/jetstream";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { pino } from "pino";

const batchSize = 200;

/** Replaces a bucket by these records, without management. */
export async function writeBucket(
  natsUrl: string,
  {
    bucket,
    ensure,
    records,
    payloadOf,
  }: {
    bucket: { streamName: string; subjectPrefix: string };
    /** Creates the bucket. */
    ensure: typeof ensurePeople;
    records: readonly { key: string; value: string }[];
    /** Returns the value with its signature. */
    payloadOf: (key: string, value: string, sequence: number) => Promise<string>;
  },
): Promise<void> {
  const logger = pino({ level: "silent" });
  const connection = await connectNats({ nats: { url: natsUrl }, name: "bench", logger });
  try {
    const manager = await jetstreamManager(connection, { checkAPI: false });
    const client = jetstream(connection);
    await deleteStream(manager, bucket.streamName);
    let { lastSequence } = await ensure(manager, 1);
    for (let from = 0; from < records.length; from += batchSize) {
      const first = lastSequence + 1;
      const batch = await Promise.all(
        records.slice(from, from + batchSize).map(async ({ key, value }, index) => ({
          subject: bucket.subjectPrefix + key,
          payload: await payloadOf(key, value, first + index),
        })),
      );
      const result = await publishFenced(client, batch, lastSequence);
      if (result.failure !== undefined)
        throw new Error(`${bucket.streamName} could not be written`, { cause: result.failure });
      lastSequence += batch.length;
    }
  } finally {
    await connection.close();
  }
}
