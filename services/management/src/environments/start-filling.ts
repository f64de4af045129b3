import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { type Batches, startBatches } from "../outbox/start-batches.ts";
import type { Writer } from "../outbox/write.ts";
import { hasFills } from "./environment-fill-store.ts";
import { createEnvironmentFills } from "./fill-environment.ts";

/** Continues the fills of all environments. */
export function startFilling(options: {
  sql: Sql;
  writer: Writer;
  now: () => Date;
  newId: () => string;
  logger: Logger;
}): Batches {
  const fills = createEnvironmentFills(options);
  return startBatches({
    ...options,
    hasWork: hasFills,
    async writeBatch(write) {
      const filled = await fills.continue(write);
      if (filled?.isComplete)
        options.logger.info(
          { environmentId: filled.environmentId },
          "the environment contains all flags",
        );
      return filled !== undefined;
    },
    failure: "a new environment was not filled",
  });
}
