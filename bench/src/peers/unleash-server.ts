import { randomBytes } from "node:crypto";
import { join } from "node:path";
import postgres from "postgres";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import type { Postgres } from "../system/backends.ts";
import type { TargetedFlag } from "../targeting/targeted-flags.ts";
import { until } from "../until.ts";
import { type UnleashFeature, unleashFeature, unleashStrategy } from "./unleash-feature.ts";

/** An Unleash server in its own process, whose frontend API returns the flags. */
export type Unleash = { url: string; child: Child; frontendToken: string };

const environment = "development";

export async function startUnleash(
  bench: Bench,
  { postgres: server, flags }: { postgres: Postgres; flags: readonly TargetedFlag[] },
): Promise<Unleash> {
  const secret = randomBytes(32).toString("hex");
  const [adminToken, frontendToken] = [`*:*.${secret}`, `default:${environment}.${secret}`];
  const child = await startChild(bench, {
    program: join(import.meta.dirname, "unleash-process.ts"),
    core: bench.cores?.server,
    // Its dependencies print deprecation warnings.
    nodeOptions: ["--no-deprecation"],
    environment: {
      NODE_ENV: "production",
      TZ: "UTC",
      DATABASE_URL: await createDatabase(server, `unleash_${flags.length}`),
      DATABASE_SSL: "false",
      INIT_ADMIN_API_TOKENS: adminToken,
      INIT_FRONTEND_API_TOKENS: frontendToken,
    },
  });
  const { url } = child.greeting as { url: string };
  const unleash = { url, child, frontendToken };
  for (const flag of flags) await createFlag(`${url}/api/admin/projects/default`, adminToken, flag);
  await awaitFlags(unleash, flags);
  return unleash;
}

async function createDatabase({ adminUrl }: Postgres, database: string): Promise<string> {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  await sql`create database ${sql(database)}`;
  await sql.end();
  const url = new URL(adminUrl);
  url.pathname = `/${database}`;
  return url.href;
}

async function createFlag(projectUrl: string, token: string, flag: TargetedFlag): Promise<void> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${projectUrl}/features${path}`, {
      method: "POST",
      headers: { authorization: token, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!response.ok)
      throw new Error(`Unleash, ${path}: ${response.status} ${await response.text()}`);
    await response.arrayBuffer();
  };
  const feature: UnleashFeature = unleashFeature(flag);
  await post("", { name: feature.name, type: feature.type });
  const environmentPath = `/${feature.name}/environments/${environment}`;
  await post(`${environmentPath}/strategies`, unleashStrategy(flag));
  if (feature.enabled) await post(`${environmentPath}/on`, {});
}

/** Waits until the cache of the frontend API contains all flags. */
async function awaitFlags(unleash: Unleash, flags: readonly TargetedFlag[]): Promise<void> {
  const constant = flags.filter((flag) => flag.kind === "constant" && flag.on).at(-1);
  const last = constant?.key ?? "";
  await until("Unleash has all flags", async () => {
    const response = await fetch(`${unleash.url}/api/frontend`, {
      headers: { authorization: unleash.frontendToken },
    });
    return response.ok && (await response.text()).includes(`"${last}"`);
  });
}
