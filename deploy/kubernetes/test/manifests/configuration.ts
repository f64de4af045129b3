import { documentVariables, readEnvironment, urlOf, variable } from "@halyard/configuration";
import { describe, expect, jest, test } from "@jest/globals";
import { z } from "zod";
import { environmentOf, mountedSecrets, type Variable } from "../environment.ts";
import {
  generateSecrets,
  ofKind,
  overlays,
  type RenderedObject,
  render,
  settingsIn,
  workloadsOf,
} from "../rendered-overlay.ts";

const configs: Readonly<Record<string, string>> = {
  management: "services/management",
  scheduler: "services/scheduler",
  "sdk-edge": "services/sdk-edge",
  "webhook-dispatcher": "services/webhook-dispatcher",
  "usage-metering": "services/usage-metering",
  dashboard: "deploy/dashboard",
  setup: "deploy/setup",
};

/** The configuration of a migration. */
const migrationSchema = z.object({
  POSTGRES_OWNER_URL: variable(urlOf("postgres:"), {
    description: "The database, as the owner of a schema.",
    expects: "a URL",
    secret: true,
  }),
});

type Program = { configSchema: z.ZodObject; readConfig: () => unknown };

/** Returns the schema of a workload, and the function that reads `process.env` at its start. */
async function programOf(workload: string): Promise<Program> {
  if (!workload.startsWith("migrate-"))
    return import(`../../../../${configs[workload]}/src/config.ts`);
  const readConfig = () => readEnvironment(migrationSchema, process.env);
  return { configSchema: migrationSchema, readConfig };
}

const valuesOf = (variables: readonly Variable[]) =>
  Object.fromEntries(variables.map(({ name, value }) => [name, value]));

/** Variables that are not secret, but generated with the secrets, because each installation has its own. */
const madeWithSecrets: ReadonlySet<string> = new Set([
  "SIGNING_PUBLIC_KEYS",
  "SCHEDULER_SIGNING_PUBLIC_KEYS",
  "WEBHOOK_DISPATCHER_SIGNING_PUBLIC_KEYS",
]);

/** The variable that Node.js reads itself. */
const ofNode = "NODE_OPTIONS";

/** Returns unknown variables, and secrets that are not in a Secret. */
function misplaced(schema: z.ZodObject, variables: readonly Variable[]): string[] {
  const known = new Map(documentVariables(schema).map((row) => [row.name, row]));
  return variables.flatMap(({ name, source }) => {
    if (name === ofNode) return [];
    const row = known.get(name);
    if (row === undefined) return [`${name} is unknown`];
    if (row.secret && source !== "Secret") return [`${name} is a secret in a ${source}`];
    if (!row.secret && source === "Secret" && !madeWithSecrets.has(name))
      return [`${name} is not a secret`];
    return [];
  });
}

/** Matches a password in a URL, and a long random word. */
const secretLooking = /:\/\/[^/\s]*:[^/\s]*@|[A-Za-z0-9+_-]{40,}/;

describe.each(overlays)("the %s overlay", (overlay) => {
  const objects = [...render(overlay), ...generateSecrets(overlay)];
  const ours = workloadsOf(objects).filter(
    ({ kind, name }) => kind !== "StatefulSet" && name !== "gateway",
  );

  test("runs every service, setup and a migration for each schema", () => {
    expect(ours.map(({ name }) => name).toSorted()).toEqual([
      "dashboard",
      "management",
      "migrate-management",
      "migrate-scheduler",
      "migrate-usage-metering",
      "migrate-webhook-dispatcher",
      "scheduler",
      "sdk-edge",
      "setup",
      "usage-metering",
      "webhook-dispatcher",
    ]);
  });

  test.each(ours)("gives $name exactly the variables of its schema", async (workload) => {
    const { configSchema, readConfig } = await programOf(workload.name);
    const variables = environmentOf(workload, objects);
    const environment = jest.replaceProperty(process, "env", valuesOf(variables));
    try {
      expect(readConfig).not.toThrow();
    } finally {
      environment.restore();
    }
    expect(misplaced(configSchema, variables)).toEqual([]);
  });

  test.each(ours)("names every file of the Secret that $name mounts", (workload) => {
    const named = new Set(environmentOf(workload, objects).map(({ name }) => name));
    const mounted = [...mountedSecrets(workload, objects).values()].map(({ name }) => name);
    expect(mounted.filter((name) => !named.has(name))).toEqual([]);
  });

  test("contains no secrets", () => {
    expect(ofKind(render(overlay), "Secret")).toEqual([]);
    const settings = settingsIn(render(overlay)).flatMap(({ data }) => Object.values(data ?? {}));
    expect(settings.filter((value) => secretLooking.test(value))).toEqual([]);
  });

  test("gives both sides of a connection the same credentials", () => {
    const environment = (name: string) => {
      const workload = workloadsOf(objects).find((candidate) => candidate.name === name);
      if (workload === undefined) throw new Error(`There is no workload ${name}.`);
      return valuesOf(environmentOf(workload, objects));
    };
    const setup = environment("setup");
    const users = environment("nats");
    for (const { name } of ours) {
      const own = environment(name);
      const url = URL.parse(own.POSTGRES_URL ?? own.POSTGRES_OWNER_URL ?? "");
      if (url !== null) expect(url.password).toBe(setup[`${url.username.toUpperCase()}_PASSWORD`]);
      if (own.NATS_USER !== undefined)
        expect(own.NATS_PASSWORD).toBe(
          users[`${own.NATS_USER.replaceAll("-", "_").toUpperCase()}_PASSWORD`],
        );
    }
    const admin = new URL(setup.POSTGRES_ADMIN_URL ?? "");
    expect(admin.password).toBe(adminPassword(objects));
  });
});

/** Returns the password with which PostgreSQL is created. */
function adminPassword(objects: readonly RenderedObject[]): string | undefined {
  const secrets = ofKind(objects, "Secret");
  const dataOf = (name: string) =>
    secrets.find(({ metadata }) => metadata.name === name)?.stringData;
  return dataOf("postgres")?.POSTGRES_PASSWORD ?? dataOf("postgres-setup")?.password;
}

test("NATS has a user for each variable of its Secret, and for each service", () => {
  const objects = [...render("local"), ...generateSecrets("local")];
  const [nats] = workloadsOf(objects).filter(({ name }) => name === "nats");
  if (nats === undefined) throw new Error("There is no NATS.");
  const [config] = ofKind(objects, "ConfigMap").filter(
    ({ data }) => data?.["users.conf"] !== undefined,
  );
  const named = [...(config?.data?.["users.conf"] ?? "").matchAll(/password: \$(\w+)/g)];
  const given = environmentOf(nats, objects).filter(({ source }) => source === "Secret");
  expect(named.map(([, name]) => name).toSorted()).toEqual(
    given.map(({ name }) => name).toSorted(),
  );
});

test("generate-secrets generates different secrets in every run", () => {
  const randomTexts = () =>
    generateSecrets("production")
      .flatMap(({ stringData }) => Object.values(stringData ?? {}))
      .flatMap((value) => value.match(/p[0-9a-f]{48}|[A-Za-z0-9+/]{43}=/g) ?? []);
  const first = new Set(randomTexts());
  expect(first.size).toBe(24);
  expect(randomTexts().filter((text) => first.has(text))).toEqual([]);
});
