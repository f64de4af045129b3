import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { startGuardedServer } from "../src/guarded-server.ts";
import { isRunning, startLocalPostgres } from "../src/index.ts";
import { eventually } from "./gone.ts";
import { endLaunchers, launch, thisProject } from "./launched.ts";
import { throwawayDirectories } from "./throwaway.ts";

const throwawayDirectory = throwawayDirectories();
afterAll(endLaunchers);

async function rejectsConnections(url: string): Promise<boolean> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) });
  try {
    await once(socket, "connect");
    return false;
  } catch {
    return true;
  } finally {
    socket.destroy();
  }
}

describe("given a launcher that is killed with SIGKILL", () => {
  it("stops the launcher's processes, frees their ports, and removes the throwaway data", async () => {
    const open = throwawayDirectory();
    mkdirSync(join(open, "home"));
    const launched = await launch({
      directory: join(open, "home"),
      cacheDir: join(open, "cache"),
      reachableDirectory: join(open, "reachable"),
      project: thisProject,
    });
    const pids = [launched.postgresPid, launched.natsPid];
    expect(pids.filter(isRunning)).toEqual(pids);

    launched.child.kill("SIGKILL");

    await eventually("both servers have ended", () => !pids.some(isRunning));
    expect(await rejectsConnections(launched.natsUrl)).toBe(true);
    expect(await rejectsConnections(launched.adminUrl)).toBe(true);
    await eventually("the data are gone", () => readdirSync(join(open, "home")).length === 0);
  });
});

describe("given a guard that is killed with SIGKILL", () => {
  it("stops its server, and the next start waits for the end of that server", async () => {
    const dataDir = join(throwawayDirectory(), "postgres");
    const reachableDirectory = throwawayDirectory();
    const options = { dataDir, reachableDirectory, durable: false, throwaway: true };
    const first = await startLocalPostgres(options);

    process.kill(parentOf(first.pid), "SIGKILL");

    expect(await first.exited).toEqual({ code: null, signal: "SIGKILL" });
    const second = await startLocalPostgres({ ...options, port: first.port });
    expect(isRunning(first.pid)).toBe(false);
    await second.stop();
  });
});

function parentOf(pid: number): number {
  if (process.platform !== "linux")
    return Number(execFileSync("ps", ["-o", "ppid=", "-p", String(pid)], { encoding: "utf8" }));
  return Number(/^PPid:\s+(\d+)$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]);
}

describe("given a program that cannot be started", () => {
  it("reports the cause", async () => {
    const directory = throwawayDirectory();
    const starting = startGuardedServer({
      command: join(directory, "missing"),
      args: [],
      logFile: join(directory, "log"),
      workingDirectory: directory,
      environment: {},
      stopSteps: [],
      throwawayDir: directory,
    });
    await expect(starting).rejects.toThrow("ENOENT");
  });
});
