import { snapshotBucket } from "@halyard/contracts";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Bench } from "../benchmark.ts";
import type { SnapshotContent } from "../system/snapshot-content.ts";

/** Number of flags that change in turn. */
const changingFlags = 100;

/**
 * Publishes flag changes to the snapshot bucket instead of management. It changes the last flags of the
 * bucket, so that a follower that reads the whole bucket receives the change before the entry.
 */
export type FlagChanges = {
  /** Toggles the next flag. Resolves when the broker has acknowledged its entry. */
  publishNext(): Promise<void>;
};

export async function openFlagChanges(
  bench: Bench,
  natsUrl: string,
  { records, scopes }: SnapshotContent,
): Promise<FlagChanges> {
  const connection = await connect({ servers: natsUrl });
  bench.afterwards(() => connection.close());
  const client = jetstream(connection, { timeout: timeoutMs });
  const flags = records
    .filter(({ key }) => key.includes(`.flag.${scopes.at(-1)?.environmentId}.`))
    .slice(-changingFlags)
    .map(({ key, value }) => ({ key, entry: JSON.parse(value) as FlagEntry }));
  let published = 0;
  return {
    async publishNext() {
      const { key, entry } = flags[published % flags.length] as (typeof flags)[number];
      published += 1;
      entry.version += 1;
      entry.enabled = !entry.enabled;
      entry.committed_at = new Date().toISOString();
      await client.publish(snapshotBucket.subjectPrefix + key, JSON.stringify(entry));
    },
  };
}

type FlagEntry = { version: number; enabled: boolean; committed_at: string };

/** NATS acknowledges nothing while it creates a consumer over many subjects. */
const timeoutMs = 30_000;
