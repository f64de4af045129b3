import { randomBytes } from "node:crypto";
import postgres from "postgres";
import type { Bench } from "../benchmark.ts";
import type { Target } from "../http/load.ts";
import { startChild } from "../processes/child-process.ts";
import type { Cores } from "../processes/cores.ts";
import type { Postgres } from "../system/backends.ts";
import type { AnyFlag } from "../targeting/targeted-flags.ts";
import { until } from "../time.ts";
import { unleashFeature } from "./unleash-feature.ts";

const environment = "development";

/** Starts an Unleash server in its own process, whose frontend API returns the flags. */
export async function startUnleash(
  bench: Bench,
  {
    postgres: server,
    flags,
    core,
  }: { postgres: Postgres; flags: readonly AnyFlag[]; core: keyof Cores },
): Promise<Target & { frontendToken: string; backendToken: string }> {
  const secret = randomBytes(32).toString("hex");
  const [adminToken, frontendToken] = [`*:*.${secret}`, `default:${environment}.${secret}`];
  const backendToken = `*:${environment}.${secret}`;
  const child = await startChild(bench, {
    program: "peers/unleash-process.ts",
    core,
    // Its dependencies print deprecation warnings.
    nodeOptions: ["--no-deprecation"],
    environment: {
      ...{ NODE_ENV: "production", TZ: "UTC" },
      DATABASE_URL: await createDatabase(server, `unleash_${secret}`),
      ...{ DATABASE_SSL: "false", INIT_ADMIN_API_TOKENS: adminToken },
      ...{ INIT_FRONTEND_API_TOKENS: frontendToken, INIT_BACKEND_API_TOKENS: backendToken },
    },
  });
  const { url } = child.greeting;
  for (const flag of flags) await createFlag(`${url}/api/admin/projects/default`, adminToken, flag);
  const last = flags.filter((flag) => flag.kind === "constant" && flag.on).at(-1)?.key ?? "";
  await until("the cache of the frontend API contains all flags", async () => {
    const headers = { authorization: frontendToken };
    const response = await fetch(`${url}/api/frontend`, { headers });
    return response.ok && (await response.text()).includes(`"${last}"`);
  });
  return { ...child, url, frontendToken, backendToken };
}

async function createDatabase({ adminUrl }: Postgres, database: string): Promise<string> {
  const sql = postgres(adminUrl, { max: 1, onnotice: () => undefined });
  await sql`create database ${sql(database)}`;
  await sql.end();
  return Object.assign(new URL(adminUrl), { pathname: `/${database}` }).href;
}

async function createFlag(projectUrl: string, token: string, flag: AnyFlag): Promise<void> {
  const post = async (path: string, body: object) => {
    const response = await fetch(`${projectUrl}/features${path}`, {
      method: "POST",
      headers: { authorization: token, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`Unleash, ${path}: ${response.status} ${text}`);
  };
  const { name, type, enabled, strategies } = unleashFeature(flag);
  await post("", { name, type });
  await post(`/${name}/environments/${environment}/strategies`, strategies[0] ?? {});
  if (enabled) await post(`/${name}/environments/${environment}/on`, {});
}
