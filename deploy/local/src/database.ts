import { StartError } from "@halyard/local-backends";
import { type ProvisionedService, provisionDoctor, provisionService } from "@halyard/postgres";
import type { Credentials } from "./credentials.ts";
import { runProgram } from "./run-program.ts";

const DATABASE = "halyard";

/** The services that have a schema: its name, and the prefix under which the passwords of its two roles are stored. */
const schemas = {
  management: { schema: "management", prefix: "" },
  scheduler: { schema: "scheduler", prefix: "scheduler_" },
  "webhook-dispatcher": { schema: "webhooks", prefix: "webhooks_" },
  "usage-metering": { schema: "usage", prefix: "usage_" },
} as const;

export type ServiceWithSchema = keyof typeof schemas;

export type DatabaseUrls = Readonly<Record<ServiceWithSchema, ProvisionedService>>;

export function hasSchema(service: string): service is ServiceWithSchema {
  return service in schemas;
}

/** Creates the database, roles and schemas, with the passwords of this home. */
export async function prepareDatabase(options: {
  adminUrl: string;
  credentials: Credentials;
}): Promise<{ databaseUrls: DatabaseUrls; doctorUrl: string }> {
  const { adminUrl, credentials } = options;
  const provisioned: [string, ProvisionedService][] = [];
  let doctorUrl: string;
  try {
    for (const [service, { schema, prefix }] of Object.entries(schemas)) {
      const urls = await provisionService({
        adminUrl,
        database: DATABASE,
        service: schema,
        ownerPassword: credentials[`${prefix}owner_password`],
        runtimePassword: credentials[`${prefix}runtime_password`],
      });
      provisioned.push([service, urls]);
    }
    doctorUrl = await provisionDoctor({
      ...{ adminUrl, database: DATABASE, password: credentials.doctor_password },
      schemas: Object.values(schemas).map(({ schema }) => schema),
    });
  } catch (cause) {
    const reason = cause instanceof Error ? cause.message : String(cause);
    throw new StartError(
      `Could not prepare the database at ${new URL(adminUrl).host}: ${reason}. ` +
        "The role in POSTGRES_URL must be able to create roles and databases.",
      { cause },
    );
  }
  return { databaseUrls: Object.fromEntries(provisioned) as DatabaseUrls, doctorUrl };
}

type Context = { projectDir: string; logsDir: string };

/** Runs a service's migrations in a separate process, with the command that production uses. */
export function migrate(
  context: Context,
  { service, ownerUrl }: { service: ServiceWithSchema; ownerUrl: string },
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
