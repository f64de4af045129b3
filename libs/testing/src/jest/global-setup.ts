import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNatsServer, startLocalPostgres } from "@halyard/local-backends";
import type { Config } from "jest";
import { GenericContainer, Wait } from "testcontainers";
import { publishBackends, type TestBackends } from "../backends.ts";
import { cacheDir } from "../project-root.ts";
import { type Release, releases, removeTemporary } from "../releases.ts";
import { prepareTemplate } from "../template-database.ts";
import { startRestartableNats } from "../test-nats.ts";

/** Every test file opens a few pools, and several files run at the same time. */
const maxConnections = 400;
const postgresImage = "postgres:18";
const natsImage = "nats:2";
const templateDatabase = "halyard_test_template";

// biome-ignore lint/style/noDefaultExport: Jest requires the global setup as a default export.
export default async function globalSetup({ maxWorkers }: Config): Promise<void> {
  // A run of `--watch` finds the servers of the previous run.
  if (releases.length > 0) return;
  // Tests start dozens of service processes, and half of each start is the compilation of modules. Jest's workers,
  // which start after this function, pass the variable on.
  process.env.NODE_COMPILE_CACHE ??= join(cacheDir, "node");
  const postgresAdminUrl = await startPostgres();
  await prepareTemplate(postgresAdminUrl, templateDatabase);
  publishBackends({
    postgresAdminUrl,
    templateDatabase,
    nats: await chooseNats(Number(maxWorkers)),
  });
}

async function startPostgres(): Promise<string> {
  const external = process.env.TEST_POSTGRES_URL;
  if (external !== undefined) return external;
  if (process.env.TEST_BACKENDS === "containers") return startPostgresContainer();
  const dataDir = mkdtempSync(join(tmpdir(), "halyard-test-"));
  const options = { dataDir, durable: false, maxConnections, throwaway: true };
  const server = await startLocalPostgres(options);
  keepForTeardown(async () => {
    await server.stop();
    removeTemporary(dataDir);
  });
  return server.adminUrl;
}

async function startPostgresContainer(): Promise<string> {
  const password = "tests-only";
  const container = await new GenericContainer(postgresImage)
    .withEnvironment({ POSTGRES_PASSWORD: password })
    .withCommand(["postgres", "-c", `max_connections=${maxConnections}`, "-c", "fsync=off"])
    .withExposedPorts(5432)
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
  keepForTeardown(async () => void (await container.stop()));
  const address = `${container.getHost()}:${container.getMappedPort(5432)}`;
  return `postgres://postgres:${password}@${address}/postgres`;
}

async function chooseNats(workers: number): Promise<TestBackends["nats"]> {
  const external = process.env.TEST_NATS_URL;
  if (external !== undefined) return { kind: "external", url: external };
  if (process.env.TEST_BACKENDS === "containers") return { kind: "containers", image: natsImage };
  const binary = await findNatsServer({ cacheDir });
  const servers = await Promise.all(
    Array.from({ length: workers }, () => startRestartableNats(binary)),
  );
  for (const server of servers) keepForTeardown(server.stop);
  return { kind: "embedded", binary, urlOfWorker: servers.map(({ url }) => url) };
}

function keepForTeardown(release: Release): void {
  releases.push(release);
}
