import { snapshotBucket } from "@halyard/contracts";
import { jetstream } from "@nats-io/jetstream";
import type { Bench } from "../benchmark.ts";
import { connectNats, type Nats } from "../system/backends.ts";
import { type SnapshotContent, snapshotContent } from "../system/snapshot-content.ts";

const changingFlags = 100;
/** NATS acknowledges nothing while it creates a consumer over many subjects. */
const timeoutMs = 30_000;
type FlagEntry = { version: number; enabled: boolean; committed_at: string };

/**
 * Publishes flag changes to the snapshot bucket instead of management. It changes the last flags of the
 * bucket, so that a follower that reads the whole bucket receives the change before the entry. Returns a
 * function that toggles the next flag. It resolves when the broker has acknowledged the flag's entry.
 */
export async function openFlagChanges(
  bench: Bench,
  nats: Nats,
  { records, scopes }: SnapshotContent,
): Promise<() => Promise<void>> {
  const client = jetstream(await connectNats(bench, nats), { timeout: timeoutMs });
  const flags = records
    .filter(({ key }) => key.includes(`.flag.${scopes.at(-1)?.environmentId}.`))
    .slice(-changingFlags)
    .map(({ key, value }) => ({ key, entry: JSON.parse(value) as FlagEntry }));
  let published = 0;
  return async () => {
    const { key, entry } = flags[published % flags.length] as (typeof flags)[number];
    published += 1;
    entry.version += 1;
    entry.enabled = !entry.enabled;
    entry.committed_at = new Date().toISOString();
    await client.publish(snapshotBucket.subjectPrefix + key, JSON.stringify(entry));
  };
}

/** Returns a snapshot with about `entries` entries, nearly all of them flags. */
export function manyEntries(entries: number): SnapshotContent {
  const flagsPerEnvironment = Math.min(entries, 200);
  return snapshotContent({ environments: Math.ceil(entries / 200), flagsPerEnvironment });
}
