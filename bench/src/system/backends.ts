import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type NatsUser, natsUsersConfiguration } from "@halyard/contracts";
import { ensureStreams } from "@halyard/jetstream";
import {
  findNatsServer,
  type Reaper,
  startLocalNats,
  startLocalPostgres,
  startReaper,
} from "@halyard/local-backends";
import { migrate, provisionService } from "@halyard/postgres";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type { Bench } from "../benchmark.ts";
import { cacheDir, migrationsDirOf } from "../project-root.ts";

/** Temporary PostgreSQL and NATS servers of a benchmark. */
export type Nats = { url: string; pid: number; version: string; stop(): Promise<void> };

export const natsPasswordOf = (user: NatsUser) => `the password of ${user}`;

/** Services log in as in production. Benchmarks connect without a login, as `operator`. */
const natsSettings = [
  natsUsersConfiguration({ passwordOf: (user) => JSON.stringify(natsPasswordOf(user)) }),
  'no_auth_user: "operator"',
].join("\n");

async function createStreams(url: string): Promise<void> {
  const connection = await connect({ servers: url });
  await ensureStreams(await jetstreamManager(connection), { replicas: 1 });
  await connection.close();
}

export async function startNats(bench: Bench): Promise<Nats> {
  const { reaper, directory } = throwaway(bench, "nats");
  const binary = await findNatsServer({ cacheDir });
  const server = await startLocalNats({
    ...{ binary, storeDir: directory, reaper },
    settings: natsSettings,
  });
  await createStreams(server.url);
  const stop = async () => void (await server.stop());
  bench.afterwards(stop);
  return { url: server.url, pid: server.pid, version: server.version, stop };
}

/** URLs of the services' roles. */
export type Postgres = {
  adminUrl: string;
  managementUrl: string;
  schedulerUrl: string;
  webhooksUrl: string;
  usageUrl: string;
  pid: number;
  version: string;
};

/** Durable as in production: commits wait for the disk. */
export async function startPostgres(bench: Bench): Promise<Postgres> {
  const { reaper, directory } = throwaway(bench, "postgres");
  const server = await startLocalPostgres({ dataDir: directory, durable: true, reaper });
  bench.afterwards(() => server.stop());
  const managementUrl = await prepareSchema(server.adminUrl, "management");
  const schedulerUrl = await prepareSchema(server.adminUrl, "scheduler");
  const webhooksUrl = await prepareSchema(server.adminUrl, "webhook-dispatcher", "webhooks");
  const usageUrl = await prepareSchema(server.adminUrl, "usage-metering", "usage");
  const adminUrl = new URL(server.adminUrl);
  adminUrl.pathname = "/halyard";
  return {
    adminUrl: adminUrl.href,
    managementUrl,
    schedulerUrl,
    webhooksUrl,
    usageUrl,
    pid: server.pid,
    version: server.version,
  };
}

/** The URL of a service's role. */
async function prepareSchema(
  adminUrl: string,
  service: string,
  schema: string = service,
): Promise<string> {
  const { ownerUrl, runtimeUrl } = await provisionService({
    adminUrl,
    database: "halyard",
    service: schema,
    ownerPassword: "bench-owner",
    runtimePassword: "bench-runtime",
  });
  const directory = migrationsDirOf(service);
  await migrate({ ownerUrl, schema, directory });
  return runtimeUrl;
}

function throwaway(bench: Bench, name: string): { reaper: Reaper; directory: string } {
  const reaper = startReaper();
  const directory = mkdtempSync(join(tmpdir(), `halyard-bench-${name}-`));
  reaper.removeAfterwards(directory);
  bench.afterwards(async () => {
    await reaper.close();
    rmSync(directory, { recursive: true, force: true });
  });
  return { reaper, directory };
}
