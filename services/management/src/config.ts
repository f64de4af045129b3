import { PlanLimits } from "@halyard/contracts";
import { portVariable, readEnvironment, sharedVariables, urlOf, variable } from "@halyard/service";
import { z } from "zod";

/** The shortest operator token that is accepted: as hard to guess as a 128-bit key, written in hex. */
const shortestToken = 32;

const PlansByName = z.record(z.string().min(1).max(50), PlanLimits);

function parsePlans(text: string): z.output<typeof PlansByName> | undefined {
  try {
    return PlansByName.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}

export const configSchema = z.object({
  ...sharedVariables,
  PORT: portVariable(8081),
  POSTGRES_URL: variable(urlOf("postgres:", "postgresql:"), {
    description: "The database, as the role `management_runtime`.",
    expects: "an address such as postgres://management_runtime:secret@host:5432/halyard",
    secret: true,
  }),
  POSTGRES_MAX_CONNECTIONS: variable(
    z
      .string()
      .regex(/^\d{1,3}$/)
      .transform(Number)
      .pipe(z.int().min(2))
      .default(20),
    {
      description: "How many connections this process opens to PostgreSQL at most.",
      expects: "a number from 2 to 999",
    },
  ),
  OPERATOR_TOKEN: variable(z.string().min(shortestToken), {
    description: "The platform operator's bearer token.",
    expects: `a secret of at least ${shortestToken} characters`,
    secret: true,
  }),
  PLANS: variable(
    z
      .string()
      .transform((text, context) => {
        const plans = parsePlans(text);
        if (plans === undefined) context.addIssue({ code: "invalid_format", format: "json" });
        return plans ?? {};
      })
      .default({}),
    {
      description:
        'Plans beside `free`, `starter`, `pro` and `growth`, or other limits for these; null is unlimited. For example `{"team":{"requests_per_month":5000000,"sse_connections":200,"projects":null}}`.',
      expects: "JSON that gives each plan requests_per_month, sse_connections and projects",
      documentedDefault: "none",
    },
  ),
  JETSTREAM_REPLICAS: variable(
    z
      .enum(["1", "3", "5"])
      .default("1")
      .transform((text) => Number(text)),
    {
      description: "How many NATS servers keep each stream: 1, or 3 in a cluster.",
      expects: "1, 3 or 5",
    },
  ),
});

export type Config = z.output<typeof configSchema>;

export const readConfig = (): Config => readEnvironment(configSchema, process.env);

export const migrateConfigSchema = z.object({
  POSTGRES_OWNER_URL: variable(urlOf("postgres:", "postgresql:"), {
    description: "The database, as the role `management_owner`; used by migrations only.",
    expects: "an address such as postgres://management_owner:secret@host:5432/halyard",
    secret: true,
  }),
});

export const readMigrateConfig = (): z.output<typeof migrateConfigSchema> =>
  readEnvironment(migrateConfigSchema, process.env);
