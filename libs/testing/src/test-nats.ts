import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findNatsServer, type LocalNats, startLocalNats } from "@halyard/local-backends";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { testBackends } from "./backends.ts";
import { natsTestUsers } from "./nats-login.ts";
import { cacheDir } from "./project-root.ts";
import { removeTemporary } from "./releases.ts";

/** A NATS server with JetStream for one test file, empty at the start. */
export type TestNats = { url: string; stop(): Promise<void> };

/** A NATS server that can be stopped and started again with the same address and files. */
export type RestartableNats = TestNats & {
  kill(): Promise<void>;
  /** Stops the server in order, after it has written all files. */
  shutDown(): Promise<void>;
  start(): Promise<void>;
  /** SIGSTOP makes the server silent while its connections stay open. SIGCONT continues it. */
  signal(name: NodeJS.Signals): void;
  /** Directory of the streams. */
  storeDir: string;
};

export async function startTestNats(): Promise<TestNats> {
  const { nats } = testBackends();
  switch (nats.kind) {
    case "external":
      return emptyServer(nats.url);
    case "containers":
      return startContainer(nats.image);
    case "embedded":
      return isWorkerServerInUse
        ? startRestartableNats(nats.binary)
        : emptyServer(nats.urlOfWorker[Number(process.env.JEST_WORKER_ID) - 1] ?? "");
  }
}

/** A file with several systems at the same time has one of them on the worker's server. */
let isWorkerServerInUse = false;

/** Empties a server that several test files use, one after another. */
async function emptyServer(url: string): Promise<TestNats> {
  isWorkerServerInUse = true;
  await deleteAllStreams(url);
  return {
    url,
    async stop() {
      await deleteAllStreams(url);
      isWorkerServerInUse = false;
    },
  };
}

/** Returns the binary of the NATS server, for tests that start their own server with any backends. */
export async function natsServerBinary(): Promise<string> {
  const { nats } = testBackends();
  return nats.kind === "embedded" ? nats.binary : findNatsServer({ cacheDir });
}

/** Starts a server process for tests that kill it, with any backends. */
export async function startRestartableNats(binary: string): Promise<RestartableNats> {
  const storeDir = mkdtempSync(join(tmpdir(), "halyard-test-nats-"));
  const options = { binary, storeDir, settings: natsTestUsers, throwaway: true };
  let server: LocalNats = await startLocalNats(options);
  const { url, port } = server;
  return {
    url,
    storeDir,
    async kill() {
      process.kill(server.pid, "SIGKILL");
      await server.exited;
    },
    async shutDown() {
      await server.stop();
    },
    async start() {
      server = await startLocalNats({ ...options, port });
    },
    signal: (name) => void process.kill(server.pid, name),
    async stop() {
      await server.stop();
      removeTemporary(storeDir);
    },
  };
}

async function startContainer(image: string): Promise<TestNats> {
  // Loaded on demand, because it takes a second and few test runs need containers.
  const { GenericContainer, Wait } = await import("testcontainers");
  const container = await new GenericContainer(image)
    .withCopyContentToContainer([
      { content: `jetstream {}\n${natsTestUsers}`, target: "/tests.conf" },
    ])
    .withCommand(["--config", "/tests.conf"])
    .withExposedPorts(4222)
    .withWaitStrategy(Wait.forListeningPorts())
    .start();
  return {
    url: `nats://${container.getHost()}:${container.getMappedPort(4222)}`,
    stop: async () => void (await container.stop()),
  };
}

async function deleteAllStreams(url: string): Promise<void> {
  const connection = await connect({ servers: url });
  const manager = await jetstreamManager(connection);
  for await (const stream of manager.streams.list())
    await manager.streams.delete(stream.config.name);
  await connection.close();
}
