import { signComplete } from "@halyard/api-keys";
import {
  completeKey,
  isSignedEntry,
  parseEntryKey,
  type SnapshotEntry,
  snapshotBucket,
} from "@halyard/contracts";
import { connectNats, deleteStream, ensureSnapshot, publishFenced } from "@halyard/jetstream";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { pino } from "pino";
import type { Bench } from "../benchmark.ts";
import type { Cores } from "../processes/cores.ts";
import { type Nats, startNats } from "./backends.ts";
import { startEdge } from "./services.ts";
import { benchSigner } from "./signing.ts";
import {
  type ContentOptions,
  type SnapshotContent,
  type SnapshotScope,
  snapshotContent,
} from "./snapshot-content.ts";

/** Starts a NATS with a snapshot, without management. */
export async function startSnapshot(bench: Bench, content: SnapshotContent): Promise<Nats> {
  const nats = await startNats(bench);
  await writeSnapshot(nats.url, content);
  return nats;
}

/** Starts an edge that serves a snapshot. `key` is the API key of its first environment. */
export async function startSnapshotEdge(
  bench: Bench,
  { core = "server", ...options }: ContentOptions & { core?: keyof Cores },
) {
  const content = snapshotContent(options);
  const nats = await startSnapshot(bench, content);
  const edge = await startEdge(bench, { nats, core });
  return { nats, content, edge, key: (content.scopes[0] as SnapshotScope).key };
}

const batchSize = 200;

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
  const entry = { address: parseEntryKey(key), value: JSON.parse(value) } as SnapshotEntry;
  return isSignedEntry(entry) ? benchSigner.sign(key, value) : value;
}
