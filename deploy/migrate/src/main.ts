import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { environmentOfMigration, readSchemas, type Schema } from "./config.ts";

/**
 * `npm run migrate`: the migrations of every service whose owner's address is given, one service after
 * another, each by its own command in a process of its own. Schemas depend on nothing of one another, so
 * an operator may as well run one alone.
 */
const help = `Brings the schemas of the services up to date, each as the role that owns it.

  npm run migrate

Environment
  MANAGEMENT_OWNER_URL   the database as management_owner:
                         postgres://management_owner:password@host:5432/halyard
  SCHEDULER_OWNER_URL    the same as scheduler_owner
  WEBHOOKS_OWNER_URL     the same as webhooks_owner, for the webhook dispatcher
  USAGE_OWNER_URL        the same as usage_owner, for usage metering

A service whose variable is not set is left out. One that is up to date stays as it is, and two
that run at once wait for each other. One service alone, as beside its own process:

  POSTGRES_OWNER_URL=postgres://… node services/scheduler/src/migrate.ts
`;

/** Wrong arguments or no address, as opposed to a migration that failed. */
const usageExitCode = 2;
const failedExitCode = 1;

const root = fileURLToPath(new URL("../../../", import.meta.url));

process.exitCode = main(process.argv.slice(2), readSchemas());

function main(given: readonly string[], schemas: readonly Schema[]): number {
  if (given.includes("--help") || given.includes("-h")) {
    process.stdout.write(help);
    return 0;
  }
  if (given.length > 0) return reject(`There is no option ${given[0]}.`);
  if (schemas.every(({ ownerUrl }) => ownerUrl === undefined))
    return reject(`Set ${either(schemas.map(({ variable }) => variable))}, or several of them.`);
  for (const { service, variable, ownerUrl } of schemas) {
    if (ownerUrl === undefined) {
      process.stdout.write(`${service}: left out, ${variable} is not set\n`);
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

/** The first that fails ends it: it says itself why, and what is done already need not be done again. */
function migrate(service: string, ownerUrl: string): number {
  const ended = spawnSync(process.execPath, [`services/${service}/src/migrate.ts`], {
    cwd: root,
    env: environmentOfMigration(ownerUrl),
    stdio: "inherit",
  });
  return ended.status ?? failedExitCode;
}
