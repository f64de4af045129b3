import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { environmentOfMigration, readSchemas, type Schema } from "./config.ts";

/**
 * `npm run migrate`: runs the migrations of each service whose owner's address is set, one service after another. Each
 * runs as the service's own command, in a separate process. Schemas are independent of each other, so an operator may
 * also run one of them alone.
 */
const help = `Migrates the schemas of the services to this version, each as the role that owns it.

  npm run migrate

Environment
  MANAGEMENT_OWNER_URL   the database as management_owner:
                         postgres://management_owner:password@host:5432/halyard
  SCHEDULER_OWNER_URL    the same as scheduler_owner
  WEBHOOKS_OWNER_URL     the same as webhooks_owner, for the webhook dispatcher
  USAGE_OWNER_URL        the same as usage_owner, for usage metering

A service whose variable is not set is skipped. A schema that is up to date does not change. Two
migrations of one schema wait for each other. To migrate one service alone:

  POSTGRES_OWNER_URL=postgres://… node services/scheduler/src/migrate.ts
`;

/** Exit code for wrong arguments or a missing address; a failed migration has another one. */
const usageExitCode = 2;
const failedExitCode = 1;

const root = fileURLToPath(new URL("../../../", import.meta.url));

process.exitCode = main(process.argv.slice(2), readSchemas());

function main(given: readonly string[], schemas: readonly Schema[]): number {
  if (given.includes("--help") || given.includes("-h")) {
    process.stdout.write(help);
    return 0;
  }
  if (given.length > 0) return reject(`Unknown option ${given[0]}.`);
  if (schemas.every(({ ownerUrl }) => ownerUrl === undefined))
    return reject(`Set one or more of ${either(schemas.map(({ variable }) => variable))}.`);
  for (const { service, variable, ownerUrl } of schemas) {
    if (ownerUrl === undefined) {
      process.stdout.write(`${service}: skipped, ${variable} is not set\n`);
      continue;
    }
    const exitCode = migrate(service, ownerUrl);
    if (exitCode !== 0) return exitCode;
  }
  return 0;
}

function either(names: readonly string[]): string {
  return new Intl.ListFormat("en-GB", { type: "disjunction" }).format(names);
}

function reject(problem: string): number {
  process.stderr.write(`${problem}\n\n${help}`);
  return usageExitCode;
}

/** Migrates one schema. A failure ends the command. The migration has reported it; finished migrations stay applied. */
function migrate(service: string, ownerUrl: string): number {
  const ended = spawnSync(process.execPath, [`services/${service}/src/migrate.ts`], {
    cwd: root,
    env: environmentOfMigration(ownerUrl),
    stdio: "inherit",
  });
  return ended.status ?? failedExitCode;
}
