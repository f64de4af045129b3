import { type SnapshotContent, snapshotContent } from "../system/snapshot-content.ts";

const flagsPerEnvironment = 200;

/** Returns a snapshot with about `entries` entries, nearly all of them flags. */
export function manyEntries(entries: number): SnapshotContent {
  const environments = Math.ceil(entries / flagsPerEnvironment);
  return snapshotContent({
    environments,
    flagsPerEnvironment: Math.min(entries, flagsPerEnvironment),
  });
}
