import type { SnapshotEntry } from "@halyard/contracts";
import { flagEntry } from "../builders.ts";

/** A flag whose id says that it was created then. */
export function flagOf(createdAtMs: number, number = 1): { id: string; entry: SnapshotEntry } {
  const digits = createdAtMs.toString(16).padStart(12, "0");
  const tail = String(number).padStart(12, "0");
  const flagId = `${digits.slice(0, 8)}-${digits.slice(8)}-7000-8000-${tail}`;
  return { id: flagId, entry: flagEntry({ flag_id: flagId, key: `flag-${flagId}` }) };
}
