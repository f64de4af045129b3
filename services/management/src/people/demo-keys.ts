import { ConfigurationError } from "@halyard/configuration";
import { demoUserEmail } from "@halyard/contracts";
import { UnavailableError } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { pause } from "@halyard/timing";
import type { Logger } from "pino";
import { operatorActor } from "../access/change-context.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { decideRevoke } from "../keys/decide-key.ts";
import type { Key } from "../keys/key.ts";
import { carryOut } from "../keys/key-changes.ts";
import {
  countWorkingKeysOfUser,
  lockKeysOf,
  lockWorkingKeysOfUser,
  readProjectsOfUser,
} from "../keys/key-store.ts";
import type { User } from "../keys/user.ts";
import { lockUser } from "../keys/user-store.ts";
import type { Write } from "../outbox/write.ts";
import { lockOrganization } from "../tenancy/organization-store.ts";
import { countGrantsOfEmail, deleteGrantsOf, findUsersWithAccess } from "./grant-store.ts";
import { peopleAudit } from "./people-audit.ts";
import { unlinkPerson } from "./person-changes.ts";
import { publishUser } from "./publish-user.ts";

/** Commands that remove demo keys and roles: for the database of `npm start`, for any database, and in a container. */
const removalCommands = {
  local: "HALYARD_MODE=production npm start -- --remove-demo-keys",
  database: "npm run remove-demo-keys",
  container: "src/remove-demo-keys.ts",
};

/** Numbers of working keys and of roles of demo users. The link of `npm start` signs in with such a role. */
type DemoAccess = { keys: number; roles: number };

async function countDemoAccess(sql: Sql): Promise<DemoAccess> {
  const keys = await countWorkingKeysOfUser(sql, demoUserEmail);
  return { keys, roles: await countGrantsOfEmail(sql, demoUserEmail) };
}

/**
 * Withdraws the roles of demo users, and unlinks their persons, whose sessions end. Demo users may be the last owners of
 * their organizations.
 */
export async function removeDemoRoles(
  write: Write,
  clock: { now: Date; newId: () => string },
): Promise<readonly User[]> {
  const { tx } = write;
  const users: User[] = [];
  for (const address of await findUsersWithAccess(tx, demoUserEmail)) {
    await lockOrganization(tx, address.organizationId);
    const user = await lockUser(tx, address);
    if (user === undefined) continue;
    await deleteGrantsOf(tx, user.id);
    const { personId } = user;
    if (personId !== null) await unlinkPerson(write, { ...user, personId });
    await publishUser(write, user.organizationId, user.id);
    const entry = { organizationId: user.organizationId, userId: user.id };
    recordAudit(write, [peopleAudit("user_unlinked", entry, { ...clock, ...attribution })]);
    users.push(user);
  }
  return users;
}

/** The operator runs the command that removes demo keys. */
const attribution = { actor: operatorActor, apiKeyId: null, via: null, cause: "manual" } as const;

/**
 * Revokes the keys of demo users in one transaction, which also publishes their tombstones. Keys that a demo key issued
 * belong to the same user.
 */
export async function revokeDemoKeys(
  write: Write,
  clock: { now: Date; newId: () => string },
): Promise<readonly Key[]> {
  // Takes the project locks first, in the same order as a request that issues a key. Another order could deadlock.
  const projects = await readProjectsOfUser(write.tx, demoUserEmail);
  await lockKeysOf(write.tx, projects);
  const keys = await lockWorkingKeysOfUser(write.tx, demoUserEmail);
  if (keys.length === 0) return keys;
  await carryOut(write, decideRevoke(keys, { ...clock, ...attribution }));
  return keys;
}

/**
 * Prevents production from running with demo keys, which `npm start` prints and writes to files.
 *
 * The first check runs before anything else, and demo keys abort the start. While PostgreSQL is unavailable or has no
 * tables yet, the process starts without a result. It is then not ready, and accepts no API key until a later check
 * succeeds.
 */
export type DemoKeyCheck = {
  isDone(): boolean;
  /** For `/readyz`. */
  details(): { demo_keys: "checked" | "unknown" };
  /** Throws until a check has succeeded. */
  assertDone(): void;
  stop(): Promise<void>;
};

const checkIntervalMs = 500;

export async function forbidDemoKeys(options: {
  sql: Sql;
  /** Called with the error if a later check finds demo keys. */
  onFound: (error: ConfigurationError) => void;
  logger: Logger;
}): Promise<DemoKeyCheck> {
  const { sql, logger } = options;
  const stopping = new AbortController();
  let lastFailure: string | undefined;
  let count = await countOrUndefined();
  throwIfAny(count);

  function countOrUndefined(): Promise<DemoAccess | undefined> {
    return countDemoAccess(sql).catch((err: unknown) => {
      const failure = kindOf(err);
      if (failure !== lastFailure) logger.warn({ err }, "could not check for demo keys; retrying");
      lastFailure = failure;
      return undefined;
    });
  }

  async function checkUntilDone(): Promise<void> {
    while (count === undefined && (await pause(checkIntervalMs, stopping.signal))) {
      const found = await countOrUndefined();
      throwIfAny(found);
      count = found;
    }
  }

  const checking = checkUntilDone().catch(options.onFound);
  return {
    isDone: () => count !== undefined,
    details: () => ({ demo_keys: count === undefined ? "unknown" : "checked" }),
    assertDone() {
      if (count === undefined) throw new UnavailableError("no check for demo keys has succeeded");
    },
    async stop() {
      stopping.abort();
      await checking;
    },
  };
}

/** Identifies the kind of a failure. Only a new kind is logged, such as a missing table after a refused connection. */
function kindOf(error: unknown): string {
  if (!(error instanceof Error)) return typeof error;
  return "code" in error ? `${error.name} ${error.code}` : error.name;
}

function throwIfAny(count: DemoAccess | undefined): void {
  if (count === undefined || count.keys + count.roles === 0) return;
  const keys = count.keys === 1 ? "an API key" : `${count.keys} API keys`;
  const roles = count.roles === 1 ? "a role" : `${count.roles} roles`;
  const found = [count.keys > 0 && keys, count.roles > 0 && roles].filter(Boolean).join(" and ");
  throw new ConfigurationError([
    `The database contains ${found} of the demo user ${demoUserEmail}. Production does not start with demo keys and roles.`,
    `Remove them with \`${removalCommands.database}\`, or for the database of npm start with \`${removalCommands.local}\`.`,
    `In a container of management the command is \`${removalCommands.container}\`; docs/deployment.md has the steps.`,
  ]);
}

/** Development allows demo keys. */
export const allowDemoKeys: DemoKeyCheck = {
  isDone: () => true,
  details: () => ({ demo_keys: "checked" }),
  assertDone: () => undefined,
  stop: async () => undefined,
};
