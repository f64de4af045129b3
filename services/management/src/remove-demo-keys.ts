import { ConfigurationError } from "@halyard/configuration";
import { isProblem } from "@halyard/http";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { createLogger, runCommand } from "@halyard/service";
import { v7 as uuidv7 } from "uuid";
import { readDatabaseUrl } from "./config.ts";
import { createLeaderNotifier } from "./outbox/notifications.ts";
import { createWriter } from "./outbox/write.ts";
import { removeDemoRoles, revokeDemoKeys } from "./people/demo-keys.ts";

/** `npm run remove-demo-keys`: removes the keys and roles of the demo user, then exits. */
const help = `Revokes the API keys of the demo user, withdraws its roles and ends its sessions, so that a
database can be used in production.

The audit log records each revocation. Running management publishes it within a second.
Without a running management, edges accept the keys until one starts. A second run
changes nothing.

  npm run remove-demo-keys              revoke the keys
  npm run remove-demo-keys -- --help    this

Environment
  POSTGRES_URL    the database, as the role management_service

For the database of npm start:

  HALYARD_MODE=production npm start -- --remove-demo-keys
`;

async function removeDemoKeys(): Promise<void> {
  const logger = createLogger({ service: "remove-demo-keys", level: "error" });
  const url = readDatabaseUrl();
  const sql = connectPostgres({ url, name: "remove-demo-keys", maxConnections: 1, logger });
  try {
    const lines = await remove(sql, createLeaderNotifier(sql, logger));
    process.stdout.write(lines.join("") || "The database contains no demo keys.\n");
  } finally {
    await sql.end();
  }
}

/** Removes keys and roles, each in a transaction. Returns a line for each. */
async function remove(sql: Sql, wakeRelay: () => void): Promise<string[]> {
  const writer = createWriter({ sql, newId: uuidv7, wakeRelay });
  const clock = { now: new Date(), newId: uuidv7 };
  const keys = await writer((write) => revokeDemoKeys(write, clock));
  const users = await writer((write) => removeDemoRoles(write, clock));
  return [
    ...(isProblem(keys) ? [] : keys.map(({ id }) => `Revoked the demo key ${id}.\n`)),
    ...(isProblem(users)
      ? []
      : users.map(({ id }) => `Withdrew the roles of the demo user ${id}.\n`)),
  ];
}

await runCommand(async () => {
  const given = process.argv.slice(2);
  if (given.includes("--help") || given.includes("-h")) {
    process.stdout.write(help);
    return;
  }
  if (given.length > 0)
    throw new ConfigurationError([`${given.join(" ")} is not known; see --help`]);
  await removeDemoKeys();
});
