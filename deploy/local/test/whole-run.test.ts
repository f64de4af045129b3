import { existsSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import {
  type Demo,
  eventually,
  isListening,
  launchHalyard,
  PROJECT_DIR,
  processesOf,
} from "./launcher.ts";
import { printedCurlRequests } from "./printed-curl.ts";
import { isRunning } from "./process-tree.ts";
import { throwawayDirectory } from "./throwaway.ts";

/** Real processes throughout: each test runs what `npm start` runs, in a home of its own. */
const parent = throwawayDirectory();
let count = 0;

function newHome(): string {
  count += 1;
  return join(parent, `home-${count}`);
}

async function readFlags(demo: Demo): Promise<Record<string, unknown>> {
  const response = await fetch(`${demo.base_url}/api/v1/sdk/flags`, {
    headers: { authorization: `Bearer ${demo.client_key}` },
  });
  const body = (await response.json()) as { flags: Record<string, unknown> };
  return body.flags;
}

describe("given a new home", () => {
  it("starts everything, prints lines that work, and keeps data and keys over a restart", async () => {
    const home = newHome();
    const first = launchHalyard({ home });
    const demo = await first.ready();

    expect(Object.keys(demo)).toEqual([
      "base_url",
      "operator_token",
      "organization_id",
      "project_id",
      "environment_id",
      "client_key",
      "server_key",
      "services",
    ]);
    expect(Object.keys(demo.services)).toEqual(["management", "sdk-edge", "gateway"]);
    for (const service of Object.values(demo.services)) {
      expect(isRunning(service.pid)).toBe(true);
      expect((await fetch(new URL("/readyz", service.metrics_url))).status).toBe(200);
    }
    for (const file of ["demo.json", "credentials.json"]) {
      expect(statSync(join(home, file)).mode & 0o777).toBe(0o600);
    }

    await eventually("the welcome", () => first.output().includes("Ctrl-C"));
    const [create, read] = printedCurlRequests(first.output()).map(
      (request) => () => fetch(request),
    );
    expect((await create?.())?.status).toBe(201);
    await eventually(
      "the flag is on",
      async () => (await readFlags(demo))["new-checkout"] === true,
    );
    expect((await read?.())?.status).toBe(200);

    const processes = processesOf(first);
    expect(await first.end("SIGTERM")).toBe(0);
    expect(existsSync(join(home, "demo.json"))).toBe(false);
    await eventually("no process is left", () => !processes.some(isRunning));
    expect(await isListening(demo.base_url)).toBe(false);

    const second = launchHalyard({ home });
    const { base_url, services, ...kept } = await second.ready();
    expect(demo).toMatchObject(kept);
    expect(await readFlags({ ...demo, base_url })).toEqual({ "new-checkout": true });
    expect(Object.keys(services)).toHaveLength(3);
  });

  it("makes no demo data in production mode", async () => {
    const halyard = launchHalyard({ home: newHome(), variables: { HALYARD_MODE: "production" } });
    const demo = await halyard.ready();

    expect(Object.keys(demo)).toEqual(["base_url", "operator_token", "services"]);
    const response = await fetch(`${demo.base_url}/api/v1/organizations`, {
      headers: { authorization: `Bearer ${demo.operator_token}` },
    });
    expect(await response.json()).toEqual({ organizations: [] });
  });
});

describe("given a home on which Halyard runs", () => {
  it("refuses a second start, names the process, and leaves the first one alone", async () => {
    const home = newHome();
    const first = launchHalyard({ home });
    const demo = await first.ready();

    const second = launchHalyard({ home });

    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`already runs on ${home} (process ${first.pid})`);
    expect(existsSync(join(home, "demo.json"))).toBe(true);
    expect(await isListening(demo.base_url)).toBe(true);
  });

  it("refuses another home on the same port before it starts anything", async () => {
    const first = launchHalyard({ home: newHome() });
    const { port } = new URL((await first.ready()).base_url);
    const home = newHome();

    const second = launchHalyard({ home, variables: { PORT: port } });

    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`Port ${port} is taken by another program.`);
    expect(second.output()).toContain("PORT=");
    expect(existsSync(join(home, "postgres"))).toBe(false);
  });
});

describe("given that a process of ours dies", () => {
  it.each(["sdk-edge", "gateway"])(
    "stops everything else and shows the end of the log when it is %s",
    async (name) => {
      const halyard = launchHalyard({ home: newHome() });
      const demo = await halyard.ready();
      const processes = processesOf(halyard);

      process.kill(demo.services[name]?.pid ?? 0, "SIGKILL");

      expect(await halyard.exited).toBe(1);
      expect(halyard.output()).toContain(`${name} ended by SIGKILL. The end of its log`);
      expect(processes.filter(isRunning)).toEqual([]);
      expect(existsSync(join(halyard.home, "demo.json"))).toBe(false);
    },
  );

  it("leaves no process when the launcher itself is killed, and starts again at once", async () => {
    const home = newHome();
    const halyard = launchHalyard({ home });
    const demo = await halyard.ready();
    const processes = processesOf(halyard);

    await halyard.end("SIGKILL");
    const again = launchHalyard({ home });

    await eventually("no process is left", () => !processes.some(isRunning));
    await eventually("the old address is gone", async () => !(await isListening(demo.base_url)));
    await eventually("it is announced anew", () => again.output().includes("Ctrl-C"));
    expect((await again.ready()).client_key).toBe(demo.client_key);
  });
});

describe("given that the end comes while things are still being started", () => {
  it("stops what runs already and succeeds", async () => {
    const halyard = launchHalyard({ home: newHome() });
    await eventually("PostgreSQL runs", () => halyard.output().includes("✓ PostgreSQL"));
    const processes = processesOf(halyard);

    expect(await halyard.end("SIGINT")).toBe(0);

    expect(processes.filter(isRunning)).toEqual([]);
    expect(halyard.output()).not.toContain("is ready at");
  });
});

describe("given npm start", () => {
  it("stops everything with exit code 0 when npm alone is told to stop", async () => {
    const npm = { program: "npm", args: ["start", "--silent"] };
    const halyard = launchHalyard({ home: newHome(), command: npm });
    const demo = await halyard.ready();

    expect(await halyard.end("SIGTERM")).toBe(0);

    const pids = Object.values(demo.services).map((service) => service.pid);
    expect(pids.filter(isRunning)).toEqual([]);
    expect(await isListening(demo.base_url)).toBe(false);
  });
});

describe("given a damaged home", () => {
  it("says what is damaged and how to begin anew", async () => {
    const home = newHome();
    const healthy = launchHalyard({ home });
    await eventually("PostgreSQL runs", () => healthy.output().includes("✓ PostgreSQL"));
    await healthy.end("SIGTERM");
    rmSync(join(home, "postgres/cluster/global/pg_control"));

    const halyard = launchHalyard({ home });

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain(
      `mv '${home}/postgres/cluster' '${home}/postgres/cluster.damaged'`,
    );
  });
});

describe("given servers of the user's own that do not answer", () => {
  it.each([
    ["POSTGRES_URL", "postgres://user:secret@127.0.0.1:1/postgres"],
    ["NATS_URL", "nats://127.0.0.1:1"],
  ])("names the variable %s", async (variable, url) => {
    const halyard = launchHalyard({ home: newHome(), variables: { [variable]: url } });

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain("does not answer at 127.0.0.1:1");
    expect(halyard.output()).toContain(`unset ${variable}`);
    expect(halyard.output()).not.toContain("secret");
  });
});

describe("given the scripts of the project", () => {
  it("replaces the shell by the launcher, so that npm's signals reach it", () => {
    const manifest = JSON.parse(readFileSync(join(PROJECT_DIR, "package.json"), "utf8"));
    expect(manifest.scripts.start).toMatch(/^exec node /);
    expect(manifest.scripts.dev).toMatch(/^exec node /);
  });
});
