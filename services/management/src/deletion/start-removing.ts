import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { type Batches, startBatches } from "../outbox/start-batches.ts";
import type { Writer } from "../outbox/write.ts";
import { hasRowsToRemove } from "./deletion-store.ts";
import { removeNextBatch } from "./remove-deleted.ts";

/** Removes the rows below deleted organizations, projects and environments, and e-mail addresses to be erased. */
export function startRemoving(options: {
  sql: Sql;
  writer: Writer;
  now: () => Date;
  logger: Logger;
}): Batches {
  return startBatches({
    ...options,
    hasWork: hasRowsToRemove,
    writeBatch: (write) => removeNextBatch(write, options.now()),
    failure: "rows of a deleted resource were not removed",
  });
}
