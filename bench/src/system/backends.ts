import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NatsUser, natsUsersConfiguration } from "@halyard/contracts";
import { ensureStreams } from "@halyard/jetstream";
import {
  findNatsServer,
  natsServerVersion,
  startLocalNats,
  startLocalPostgres,
} from "@halyard/local-backends";
import { migrate, provisionService, type Sql } from "@halyard/postgres";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import postgresClient from "postgres";
import type { Bench } from "../benchmark.ts";
import { cacheDir, projectRoot } from "../project-root.ts";

export type Backends = { nats: Nats; postgres: Postgres };
export type Nats = { url: string; pid: number; stop(): Promise<void> };

export async function startBackends(bench: Bench): Promise<Backends> {
  const [nats, postgres] = await Promise.all([startNats(bench), startPostgres(bench)]);
  return { nats, postgres };
}

export const natsPasswordOf = (user: NatsUser) => `the password of ${user}`;

/** Services log in as in production. Benchmarks connect without a login, as `operator`. */
const natsSettings = [
  natsUsersConfiguration({ passwordOf: (user) => JSON.stringify(natsPasswordOf(user)) }),
  'no_auth_user: "operator"',
].join("\n");

export async function startNats(bench: Bench): Promise<Nats> {
  const storeDir = throwawayDirectory(bench, "nats");
  const binary = await findNatsServer({ cacheDir });
  const server = await startLocalNats({
    ...{ binary, storeDir, throwaway: true },
    settings: natsSettings,
  });
  const { url, pid } = server;
  const stop = async () => void (await server.stop());
  bench.afterwards(stop);
  bench.version("NATS", (await natsServerVersion(binary)) ?? "of an unknown version");
  const connection = await connect({ servers: url });
  await ensureStreams(await jetstreamManager(connection), { replicas: 1 });
  await connection.close();
  return { url, pid, stop };
}

/** Opens a connection that is closed after the benchmark. */
export async function connectNats(bench: Bench, { url }: Nats): Promise<NatsConnection> {
  const connection = await connect({ servers: url });
  bench.afterwards(() => connection.close());
  return connection;
}

/** The schemas of the services with a database. */
const schemas = {
  management: "management",
  scheduler: "scheduler",
  "usage-metering": "usage",
  "webhook-dispatcher": "webhooks",
};
export type DatabaseUser = keyof typeof schemas;
/** `urls` are those of the services' roles. */
export type Postgres = { adminUrl: string; urls: Record<DatabaseUser, string>; pid: number };

/** Durable as in production: commits wait for the disk. */
export async function startPostgres(bench: Bench): Promise<Postgres> {
  const dataDir = throwawayDirectory(bench, "postgres");
  const server = await startLocalPostgres({ dataDir, throwaway: true });
  const { adminUrl, pid, version } = server;
  bench.afterwards(() => server.stop());
  bench.version("PostgreSQL", version);
  const urls: Record<string, string> = {};
  for (const [service, schema] of Object.entries(schemas)) {
    const { ownerUrl, runtimeUrl } = await provisionService({
      ...{ adminUrl, database: "halyard", service: schema },
      ...{ ownerPassword: "bench-owner", runtimePassword: "bench-runtime" },
    });
    const directory = join(projectRoot, "services", service, "migrations");
    await migrate({ ownerUrl, schema, directory });
    urls[service] = runtimeUrl;
  }
  const halyard = Object.assign(new URL(adminUrl), { pathname: "/halyard" });
  return { adminUrl: halyard.href, urls: urls as Postgres["urls"], pid };
}

/** Connects as a superuser to the schema of a service. */
export function openTables(bench: Bench, { adminUrl }: Postgres, schema: string): Sql {
  const connection = { search_path: schema };
  const sql = postgresClient(adminUrl, { max: 1, onnotice: () => undefined, connection });
  bench.afterwards(() => sql.end());
  return sql as unknown as Sql;
}

export function throwawayDirectory(bench: Bench, name: string): string {
  const directory = mkdtempSync(join(tmpdir(), `halyard-bench-${name}-`));
  bench.afterwards(() => rmSync(directory, { recursive: true, force: true }));
  return directory;
}
