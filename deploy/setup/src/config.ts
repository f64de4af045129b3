import {
  flagEventsMaxBytesVariable,
  jetstreamReplicasVariable,
  natsVariables,
  readEnvironment,
  urlOf,
  variable,
} from "@halyard/configuration";
import { z } from "zod";

/** Prefix of the variables with the passwords of a schema's two roles, by schema. */
const prefixes = {
  management: "MANAGEMENT",
  scheduler: "SCHEDULER",
  webhooks: "WEBHOOKS",
  usage: "USAGE",
} as const;

type Schema = keyof typeof prefixes;

const minPasswordLength = 8;

function passwordVariable(role: string) {
  return variable(z.string().min(minPasswordLength), {
    description: `Password of the role \`${role}\`.`,
    expects: `a secret of at least ${minPasswordLength} characters`,
    secret: true,
  });
}

export const configSchema = z.object({
  POSTGRES_ADMIN_URL: variable(urlOf("postgres:", "postgresql:"), {
    description: "PostgreSQL server, with a role that may create roles and databases.",
    expects: "an address such as postgres://postgres:secret@host:5432/postgres",
    secret: true,
  }),
  POSTGRES_DATABASE: variable(
    z
      .string()
      .regex(/^[a-z_][a-z0-9_]{0,62}$/)
      .default("halyard"),
    {
      description: "Database with all schemas. The setup creates it if it does not exist.",
      expects: "a name of lower-case letters, digits and underscores",
    },
  ),
  MANAGEMENT_OWNER_PASSWORD: passwordVariable("management_owner"),
  MANAGEMENT_SERVICE_PASSWORD: passwordVariable("management_service"),
  SCHEDULER_OWNER_PASSWORD: passwordVariable("scheduler_owner"),
  SCHEDULER_SERVICE_PASSWORD: passwordVariable("scheduler_service"),
  WEBHOOKS_OWNER_PASSWORD: passwordVariable("webhooks_owner"),
  WEBHOOKS_SERVICE_PASSWORD: passwordVariable("webhooks_service"),
  USAGE_OWNER_PASSWORD: passwordVariable("usage_owner"),
  USAGE_SERVICE_PASSWORD: passwordVariable("usage_service"),
  DOCTOR_PASSWORD: variable(z.string().min(minPasswordLength).optional(), {
    description: "Password of the role `halyard_doctor`, with which `npm run doctor` reads.",
    expects: `a secret of at least ${minPasswordLength} characters`,
    documentedDefault: "not set: the role is not made",
    secret: true,
  }),
  ...natsVariables,
  JETSTREAM_REPLICAS: jetstreamReplicasVariable,
  FLAG_EVENTS_MAX_BYTES: flagEventsMaxBytesVariable,
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config => readEnvironment(configSchema, process.env);

/** Returns the schemas with the passwords of their roles. */
export function schemasOf(
  config: Config,
): { schema: Schema; ownerPassword: string; runtimePassword: string }[] {
  return (Object.keys(prefixes) as Schema[]).map((schema) => ({
    schema,
    ownerPassword: config[`${prefixes[schema]}_OWNER_PASSWORD`],
    runtimePassword: config[`${prefixes[schema]}_SERVICE_PASSWORD`],
  }));
}
