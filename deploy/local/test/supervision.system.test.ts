import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { isRunning } from "@halyard/local-backends";
import { beforeAll, describe, expect, it } from "@jest/globals";
import { type Demo, eventually, type Halyard, launchHalyard, prepareLaunches } from "./launcher.ts";
import { processTreeOf } from "./process-tree.ts";
import { throwawayDirectories } from "./throwaway.ts";

prepareLaunches();
const throwawayDirectory = throwawayDirectories();

const title = "given a run in which everything has started, with HALYARD_GATEWAY=%s";
describe.each(["built-in", "proxy"])(title, (gateway) => {
  let halyard: Halyard;
  let demo: Demo;

  beforeAll(async () => {
    halyard = launchHalyard({
      home: join(throwawayDirectory(), "home"),
      variables: { HALYARD_GATEWAY: gateway },
      untilFileEnds: true,
    });
    demo = await halyard.ready();
    await createFlag(demo, "before");
  });

  it("restarts a killed service at its addresses and does not restart the others", async () => {
    const { management: killed, ...others } = (await halyard.ready()).services;
    await kill(["management"]);

    const { management: started, ...same } = (await halyard.ready()).services;
    expect(started).toEqual({ ...killed, pid: started?.pid });
    expect(isRunning(pidOf(started))).toBe(true);
    expect(same).toEqual(others);
    await expectChangesToReachEdges("after-management");
  });

  it("restarts all services at their addresses when all are killed", async () => {
    const killed = (await halyard.ready()).services;
    await kill(Object.keys(killed));

    const { services } = await halyard.ready();
    for (const [name, started] of Object.entries(services)) {
      expect(started).toEqual({ ...killed[name], pid: started.pid });
      expect(isRunning(started.pid)).toBe(true);
    }
    await expectChangesToReachEdges("after-all");
  });

  /** Kills services and waits until each has a new process. */
  async function kill(names: readonly string[]): Promise<void> {
    const before = (await halyard.ready()).services;
    for (const name of names) process.kill(pidOf(before[name]), "SIGKILL");
    await eventually("the new processes", async () => {
      const { services } = await halyard.ready();
      return names.every((name) => pidOf(services[name]) !== pidOf(before[name]));
    });
    for (const name of names)
      expect(halyard.output()).toContain(`${name} ended by SIGKILL. The end of its log`);
  }

  async function expectChangesToReachEdges(key: string): Promise<void> {
    await createFlag(demo, key);
    await eventually("the edge has it", async () => (await readFlags(demo)).has(key));
  }

  it.each([
    { name: "PostgreSQL", pid: () => Number.parseInt(read("postgres/cluster/postmaster.pid"), 10) },
    { name: "NATS", pid: () => natsPid() },
  ])("restarts $name on its port and data when it is killed", async ({ name, pid }) => {
    const { services } = await halyard.ready();

    process.kill(pid(), "SIGKILL");
    await eventually("the restart", () => halyard.output().includes(`✓ ${name} restarted`));

    const key = `after-${name.toLowerCase()}`;
    await createFlag(demo, key);
    await eventually("edges have the flags", async () => {
      const flags = await readFlags(demo);
      return flags.has("before") && flags.has(key);
    });
    expect((await halyard.ready()).services).toEqual(services);
  });

  it("ends the run with the end of the log when a process dies five times in a minute", async () => {
    const processes = processTreeOf(halyard.pid);
    let starts = 0;
    await eventually("the end", () => {
      const finished = halyard.output().split("✓ NATS restarted").length;
      if (finished > starts) process.kill(natsPid(), "SIGKILL");
      starts = finished;
      return !existsSync(join(halyard.home, "demo.json"));
    });

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain(
      "NATS died 5 times within a minute. NATS ended by SIGKILL. The end of its log",
    );
    expect(processes.filter(isRunning)).toEqual([]);
  });

  function natsPid(): number {
    // nats-server begins each line of its log with its process id.
    return Number(/^\[(\d+)\]/.exec(read("nats/nats-server.log"))?.[1]);
  }

  function read(file: string): string {
    return readFileSync(join(halyard.home, file), "utf8");
  }
});

function pidOf(service: { pid: number } | undefined): number {
  if (service === undefined) throw new Error("demo.json lists the service");
  return service.pid;
}

/** Creates a flag. Repeats a request that failed during a restart, after which the flag may exist (409). */
async function createFlag(demo: Demo, key: string): Promise<void> {
  await eventually(`the flag ${key}`, async () =>
    [201, 409].includes((await postFlag(demo, key)).status),
  );
}

function postFlag(demo: Demo, key: string): Promise<Response> {
  return fetch(`${demo.base_url}/api/v1/flags`, {
    method: "POST",
    headers: {
      authorization: `Bearer ${demo.server_key}`,
      "content-type": "application/json",
    },
    body: JSON.stringify({ key, name: key, enabled: true }),
  });
}

async function readFlags(demo: Demo): Promise<Set<string>> {
  const response = await fetch(`${demo.base_url}/api/v1/sdk/flags`, {
    headers: { authorization: `Bearer ${demo.client_key}` },
  });
  const { flags = {} } = (await response.json()) as { flags?: Record<string, boolean> };
  return new Set(Object.keys(flags));
}
