import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { type Batches, startBatches } from "../outbox/batches.ts";
import type { Writer } from "../outbox/write.ts";
import { hasRemovableLists, removeUnusedEntries } from "./list-store.ts";

/** Maximum number of entries per batch, so that a batch takes about 100 ms. */
const entriesAtOnce = 10_000;

/**
 * Starts the removal of the entries of lists that no audience has: lists that were replaced or removed, and uploads that
 * failed or whose process ended.
 */
export function startRemovingLists(options: { sql: Sql; writer: Writer; logger: Logger }): Batches {
  return startBatches({
    ...options,
    hasWork: hasRemovableLists,
    writeBatch: ({ tx }) => removeUnusedEntries(tx, entriesAtOnce),
    failure: "the entries of a former list were not removed",
  });
}
