import { once } from "node:events";
import { mkdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { afterAll, describe, expect, it } from "@jest/globals";
import { eventually, isRunning } from "./gone.ts";
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
  it("stops the launcher's processes and frees their ports", async () => {
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
  });
});
