import { demoUserEmail } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { operatorActor } from "../audit/attribution.ts";
import type { Write } from "../outbox/write.ts";
import { decideRevoke } from "./decide-key.ts";
import type { Key } from "./key.ts";
import { carryOut } from "./key-changes.ts";
import {
  countWorkingKeysOfUser,
  lockKeysOf,
  lockWorkingKeysOfUser,
  readProjectsOfUser,
} from "./key-store.ts";

/** The commands that remove demo keys: of the database of `npm start`, of any database, and in a container. */
export const removalCommands = {
  local: "HALYARD_MODE=production npm start -- --remove-demo-keys",
  database: "npm run remove-demo-keys",
  container: "src/remove-demo-keys.ts",
};

export function countDemoKeys(sql: Sql): Promise<number> {
  return countWorkingKeysOfUser(sql, demoUserEmail);
}

/**
 * Revokes the keys of demo users in one transaction, which also contains the tombstones for the snapshot. Keys that
 * a demo key issued belong to the same user.
 */
export async function revokeDemoKeys(
  write: Write,
  context: { now: Date; newId: () => string },
): Promise<readonly Key[]> {
  // The locks of the projects come first, because a request that issues a key takes them in this order.
  const projects = await readProjectsOfUser(write.tx, demoUserEmail);
  await lockKeysOf(write.tx, projects);
  const keys = await lockWorkingKeysOfUser(write.tx, demoUserEmail);
  if (keys.length === 0) return keys;
  const occasion = { ...context, actor: operatorActor, apiKeyId: null, cause: "manual" } as const;
  await carryOut(write, decideRevoke(keys, occasion));
  return keys;
}
