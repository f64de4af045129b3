/**
 * A service with a schema, and the database URL of the schema's owner, which is undefined if the variable is not set.
 */
export type Schema = { service: string; variable: string; ownerUrl: string | undefined };

const variables = {
  management: "MANAGEMENT_OWNER_URL",
  scheduler: "SCHEDULER_OWNER_URL",
  "webhook-dispatcher": "WEBHOOKS_OWNER_URL",
  "usage-metering": "USAGE_OWNER_URL",
} as const;

export function readSchemas(environment: NodeJS.ProcessEnv = process.env): Schema[] {
  return Object.entries(variables).map(([service, variable]) => ({
    service,
    variable,
    ownerUrl: environment[variable] || undefined,
  }));
}

/** Returns the environment of one migration. It contains the address of that schema's owner, and of no other owner. */
export function environmentOfMigration(
  ownerUrl: string,
  environment: NodeJS.ProcessEnv = process.env,
): NodeJS.ProcessEnv {
  const owners = new Set<string>(Object.values(variables));
  const others = Object.entries(environment).filter(([name]) => !owners.has(name));
  return { ...Object.fromEntries(others), POSTGRES_OWNER_URL: ownerUrl };
}
