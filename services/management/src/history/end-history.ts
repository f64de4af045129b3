import type { Transaction } from "@halyard/postgres";
import type { StatePlace } from "./history-store.ts";

/**
 * Records where the chains of states end that are deleted together with their environment, project or organization,
 * in the transaction that deletes them. Verification compares the chains with these ends. The deletion of a single
 * flag needs none, because its entries in the audit log contain the last states.
 */
export async function endHistory(tx: Transaction, places: readonly StatePlace[]): Promise<void> {
  await tx`
    select end_history(${places.map(({ flagId }) => flagId)}::uuid[],
      ${places.map(({ environmentId }) => environmentId)}::uuid[])`;
}
