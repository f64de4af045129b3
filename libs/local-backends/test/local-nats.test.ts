import { once } from "node:events";
import { rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { findNatsServer, type LocalNats, startLocalNats } from "../src/index.ts";
import { isRunning } from "../src/running-processes.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();

const parent = throwawayDirectory();
const running: LocalNats[] = [];
let count = 0;

const binary = await findNatsServer({ cacheDir: join(parent, "cache") });

afterEach(async () => {
  for (const server of running.splice(0)) await server.stop();
});

function newStoreDir(): string {
  count += 1;
  return join(parent, `nats-${count}`);
}

async function start(options: { storeDir: string; port?: number }): Promise<LocalNats> {
  const server = await startLocalNats({ binary, ...options });
  running.push(server);
  return server;
}

async function lastMessages(url: string): Promise<number> {
  const connection = await connect({ servers: url });
  const manager = await jetstreamManager(connection);
  const { state } = await manager.streams.info("kept");
  await connection.close();
  return state.messages;
}

describe("given a new directory", () => {
  it("starts a server with JetStream on loopback", async () => {
    const server = await start({ storeDir: newStoreDir() });

    expect(new URL(server.url).hostname).toBe("127.0.0.1");
    const connection = await connect({ servers: server.url });
    await expect((await jetstreamManager(connection)).getAccountInfo()).resolves.toBeDefined();
    await connection.close();
  });

  it("leaves no process when it is stopped", async () => {
    const server = await start({ storeDir: newStoreDir() });
    await server.stop();

    expect(isRunning(server.pid)).toBe(false);
  });
});

describe("given a directory of an earlier run", () => {
  it("keeps the streams, and uses the same port if requested", async () => {
    const storeDir = newStoreDir();
    const first = await start({ storeDir });
    const connection = await connect({ servers: first.url });
    const manager = await jetstreamManager(connection);
    await manager.streams.add({ name: "kept", subjects: ["kept"] });
    await jetstream(connection).publish("kept", "1");
    await connection.close();
    await first.stop();

    const second = await start({ storeDir, port: first.port });

    expect(second.url).toBe(first.url);
    expect(await lastMessages(second.url)).toBe(1);
  });
});

describe("given a directory that another server uses", () => {
  it("waits until that server has ended", async () => {
    const storeDir = newStoreDir();
    const first = await start({ storeDir });
    const steps: string[] = [];

    const starting = startLocalNats({ binary, storeDir, onStep: (text) => steps.push(text) });
    expect(steps).toEqual([`waiting for an earlier nats-server to end (process ${first.pid})`]);
    await first.stop();

    running.push(await starting);
  });
});

describe("given a start that cannot succeed", () => {
  it("reports the port if it is in use", async () => {
    const occupant = createServer().listen(0, "127.0.0.1");
    await once(occupant, "listening");
    const address = occupant.address();
    const port = typeof address === "object" ? (address?.port ?? 0) : 0;

    const starting = start({ storeDir: newStoreDir(), port });

    await expect(starting).rejects.toThrow(`The port ${port} for NATS is taken`);
    occupant.close();
  });

  it("reports the end of the log if the store cannot be used", async () => {
    const storeDir = newStoreDir();
    await (await start({ storeDir })).stop();
    rmSync(join(storeDir, "jetstream"), { recursive: true });
    writeFileSync(join(storeDir, "jetstream"), "not a directory");

    const starting = start({ storeDir });

    await expect(starting).rejects.toThrow("nats-server cannot start on the data in");
    await expect(starting).rejects.toThrow(`mv '${storeDir}' '${storeDir}.damaged'`);
  });
});
