import { signComplete } from "@halyard/api-keys";
import {
  completeKey,
  isSignedEntry,
  parseEntryKey,
  type SnapshotEntry,
  snapshotBucket,
} from "@halyard/contracts";
import { ensureSnapshot } from "@halyard/jetstream";
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
import { writeBucket } from "./write-bucket.ts";

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

/** Writes the snapshot bucket without management. */
export const writeSnapshot = (natsUrl: string, { records }: SnapshotContent): Promise<void> =>
  writeBucket(natsUrl, { bucket: snapshotBucket, ensure: ensureSnapshot, records, payloadOf });

async function payloadOf(key: string, value: string, sequence: number): Promise<string> {
  if (key === completeKey) return signComplete(benchSigner, JSON.parse(value), sequence);
  const entry = { address: parseEntryKey(key), value: JSON.parse(value) } as SnapshotEntry;
  return isSignedEntry(entry) ? benchSigner.sign(key, value) : value;
}
