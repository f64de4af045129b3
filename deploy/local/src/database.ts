import { join } from "node:path";
import { startBackgroundProcess } from "@halyard/local-backends";
import { type ProvisionedService, provisionService } from "@halyard/postgres";
import type { Credentials } from "./credentials.ts";
import { endOfLog } from "./end-of-log.ts";
import { StartError } from "./start-error.ts";

export const DATABASE = "halyard";

/** The services that have a schema, and two roles each. */
export type OwnerOfSchema = "management" | "scheduler" | "webhook-dispatcher" | "usage-metering";

export type DatabaseUrls = Readonly<Record<OwnerOfSchema, ProvisionedService>>;

/** Makes database, roles and schemas, with the passwords of this home. */
export async function prepareDatabase(options: {
  adminUrl: string;
  credentials: Credentials;
}): Promise<DatabaseUrls> {
  const { adminUrl, credentials } = options;
  const provision = (schema: string, ownerPassword: string, runtimePassword: string) =>
    provisionService({
      adminUrl,
      database: DATABASE,
      service: schema,
      ownerPassword,
      runtimePassword,
    });
  try {
    return {
      management: await provision(
        "management",
        credentials.owner_password,
        credentials.runtime_password,
      ),
      scheduler: await provision(
        "scheduler",
        credentials.scheduler_owner_password,
        credentials.scheduler_runtime_password,
      ),
      "webhook-dispatcher": await provision(
        "webhooks",
        credentials.webhooks_owner_password,
        credentials.webhooks_runtime_password,
      ),
      "usage-metering": await provision(
        "usage",
        credentials.usage_owner_password,
        credentials.usage_runtime_password,
      ),
    };
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      `The database could not be prepared at ${new URL(adminUrl).host}: ${reason}. ` +
        "The role in POSTGRES_URL must be able to create roles and databases.",
      { cause },
    );
  }
}

type Context = { projectDir: string; logsDir: string };

/** Runs a service's migrations as the command that production uses, in a process of its own. */
export function migrate(
  context: Context,
  { service, ownerUrl }: { service: OwnerOfSchema; ownerUrl: string },
): Promise<void> {
  return runProgram(context, {
    what: `The migrations of ${service}`,
    program: `services/${service}/src/migrate.ts`,
    logName: `${service}-migrate.log`,
    environment: { POSTGRES_OWNER_URL: ownerUrl },
  });
}

/** Revokes the demo keys with the command that `npm run remove-demo-keys` runs. */
export function removeDemoKeys(context: Context, runtimeUrl: string): Promise<void> {
  return runProgram(context, {
    what: "The removal of the demo keys",
    program: "services/management/src/remove-demo-keys.ts",
    logName: "remove-demo-keys.log",
    environment: { POSTGRES_URL: runtimeUrl },
  });
}

async function runProgram(
  { projectDir, logsDir }: Context,
  options: { what: string; program: string; logName: string; environment: Record<string, string> },
): Promise<void> {
  const { what, program, logName, environment } = options;
  const { exited, logFile } = await startBackgroundProcess({
    command: process.execPath,
    args: [join(projectDir, program)],
    logFile: join(logsDir, logName),
    workingDirectory: projectDir,
    environment,
    stopSteps: [],
  });
  const status = await exited;
  if (status.code === 0) return;
  throw new StartError(`${what} failed (${logFile}):${endOfLog(logFile)}`);
}
