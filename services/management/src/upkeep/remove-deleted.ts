import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { removeRequestsOfDeleted } from "../change-requests/request-store.ts";
import { type Batches, startBatches } from "../outbox/batches.ts";
import { entryToPublish } from "../outbox/outbox-message.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { removePeople } from "../people/remove-people.ts";
import {
  claimDeletedEnvironment,
  type DeletedEnvironment,
  eraseFromAuditLog,
  finishEmptyEnvironments,
  finishEnvironment,
  hasRowsToRemove,
  lockStates,
  removeAudiences,
  removeFill,
  removeKeys,
  removeRest,
  removeStates,
} from "../tenancy/deletion-store.ts";

/**
 * Removes the rows of deleted environments, projects and organizations, one batch per transaction. The rows marked as
 * deleted record the remaining work, so any process can continue after a crash.
 *
 * The tombstone of an environment already ends its keys and flags in every reader of the snapshot. The clean-up purges
 * the entries of its flags just before this tombstone. Each key gets its tombstone, because no subject matches the
 * keys of one environment, and a signed entry of a key must not return. So does each audience and each chunk of its list.
 */

/** Maximum number of rows per batch. The same bound as for a batch of a new environment, for the same reasons. */
export const removedAtOnce = 200;

/** An audience has up to 1,024 chunks, each with a tombstone, although few have more than 16. */
const audiencesAtOnce = 10;

/** Removes the next batch. Returns whether work may be left. */
export async function removeNextBatch(write: Write, now: Date): Promise<boolean> {
  // Comes first: users of a deleted organization stay until their e-mail addresses are erased.
  if (await eraseFromAuditLog(write.tx, removedAtOnce)) return true;
  if ((await finishEmptyEnvironments(write.tx, removedAtOnce)) > 0) return true;
  const environment = await claimDeletedEnvironment(write.tx);
  if (environment !== undefined) {
    await removeOfEnvironment(write, environment, now);
    return true;
  }
  if (await removePeople(write, now)) return true;
  if (await removeRequestsOfDeleted(write.tx, removedAtOnce)) return true;
  const tombstones = await removeAudiences(write.tx, audiencesAtOnce, now);
  write.publish(tombstones);
  return tombstones.length > 0 || removeRest(write.tx, removedAtOnce);
}

async function removeOfEnvironment(
  write: Write,
  environment: DeletedEnvironment,
  now: Date,
): Promise<void> {
  const { organizationId } = environment;
  const keys = await removeKeys(write.tx, environment, removedAtOnce);
  write.publish(
    keys.map(({ keyId, version }) =>
      entryToPublish({
        address: { kind: "key", organizationId, keyId },
        value: { deleted: true, version, committed_at: now.toISOString() },
      }),
    ),
  );
  if (keys.length === removedAtOnce) return;

  await removeFill(write.tx, environment);
  const states = await lockStates(write.tx, environment, removedAtOnce);
  if (states.length > 0) {
    await removeStates(
      write.tx,
      environment,
      states.map(({ flagId }) => flagId),
    );
  }
  if (states.length < removedAtOnce) await finishEnvironment(write.tx, environment);
}

/**
 * Starts the removal of rows of deleted organizations, projects and environments, and the erasure of e-mail addresses.
 */
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
