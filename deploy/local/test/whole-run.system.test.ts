import { execFileSync } from "node:child_process";
import { existsSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { isRunning } from "@halyard/local-backends";
import { beforeAll, describe, expect, it } from "@jest/globals";
import type { DemoCredentials } from "../src/credentials.ts";
import { createOperatorApi, provideDemoData } from "../src/demo-data.ts";
import {
  type Demo,
  eventually,
  type Halyard,
  isListening,
  launchHalyard,
  PROJECT_DIR,
  prepareLaunches,
} from "./launcher.ts";
import { printedCurlRequests } from "./printed-curl.ts";
import { processTreeOf } from "./process-tree.ts";
import { throwawayDirectories } from "./throwaway.ts";

prepareLaunches();
const throwawayDirectory = throwawayDirectories();

/**
 * Tests of `npm start` with real processes. The first test creates a home. Later tests use copies of it, because
 * creating a database takes longer than using one.
 */
const parent = throwawayDirectory();
const usedHome = join(parent, "used");
let count = 0;

function newHome(): string {
  count += 1;
  return join(parent, `home-${count}`);
}

function copyOfUsedHome(): string {
  const home = newHome();
  execFileSync("cp", ["-a", usedHome, home]);
  return home;
}

async function readFlags(demo: Pick<Demo, "base_url" | "client_key">): Promise<unknown> {
  const response = await fetch(`${demo.base_url}/api/v1/sdk/flags`, {
    headers: { authorization: `Bearer ${demo.client_key}` },
  });
  return response.json();
}

/** Opens the printed link of the dashboard as a browser does. Returns the session that it begins. */
async function signInByLink(output: string) {
  const [, url = "", code] = /^Dashboard: (\S+)#link=([\w-]{43})$/m.exec(output) ?? [];
  const page = await fetch(url, { headers: { accept: "text/html" } });
  expect(page.headers.get("content-security-policy")).toContain("script-src 'self'");
  expect(await page.text()).toContain('<script type="module"');
  const answered = await fetch(new URL("/auth/link/verify", url), {
    method: "POST",
    headers: { "content-type": "application/json", origin: new URL(url).origin },
    body: JSON.stringify({ code }),
  });
  const [cookie = ""] = answered.headers.getSetCookie();
  const headers = { cookie: cookie.split(";", 1).join() };
  const session = await fetch(new URL("/api/v1/session", url), { headers });
  return session.json();
}

async function deleteFlags(demo: Demo): Promise<void> {
  const url = `${demo.base_url}/api/v1/flags`;
  const headers = { authorization: `Bearer ${demo.server_key}` };
  const { flags } = (await (await fetch(url, { headers })).json()) as { flags: { id: string }[] };
  for (const { id } of flags) {
    const { status } = await fetch(`${url}/${id}`, { method: "DELETE", headers });
    expect(status).toBeLessThan(300);
  }
}

/** The demo.json of the first run. */
let first: Demo;

describe("given a new home", () => {
  const home = usedHome;

  it("starts every service as a process, lists them all in demo.json, and stops when only npm receives SIGTERM", async () => {
    const halyard = launchHalyard({
      home,
      command: { program: "npm", args: ["start", "--silent"] },
    });
    const demo = await halyard.ready();
    first = demo;

    expect(Object.keys(demo)).toEqual([
      "base_url",
      "operator_token",
      "organization_id",
      "project_id",
      "environment_id",
      "client_key",
      "server_key",
      "reader_key",
      "services",
    ]);
    expect(Object.keys(demo.services)).toEqual([
      "management",
      "sdk-edge",
      "scheduler",
      "webhook-dispatcher",
      "usage-metering",
      "dashboard",
      "gateway",
    ]);
    for (const service of Object.values(demo.services)) {
      expect(isRunning(service.pid)).toBe(true);
      expect((await fetch(new URL("/readyz", service.metrics_url))).status).toBe(200);
    }
    for (const file of ["demo.json", "credentials.json"]) {
      expect(statSync(join(home, file)).mode & 0o777).toBe(0o600);
    }

    await eventually("the welcome", () => halyard.output().includes("Ctrl-C"));
    expect(await signInByLink(halyard.output())).toMatchObject({
      person: { email: "demo@example.com" },
      organizations: [{ id: demo.organization_id, role: "owner" }],
    });
    const [create, read] = printedCurlRequests(halyard.output());
    if (create === undefined || read === undefined) throw new Error("two lines to copy");
    expect((await fetch(create)).status).toBe(201);
    await eventually("the printed line shows the flag", async () => {
      const answer = await fetch(read.clone());
      const { flags } = (await answer.json()) as { flags: Record<string, boolean> };
      return flags["new-checkout"] === true;
    });

    const processes = processTreeOf(halyard.pid);
    expect(processes.length).toBeGreaterThan(Object.keys(demo.services).length + 2);
    expect(await halyard.end("SIGTERM")).toBe(0);
    expect(processes.filter(isRunning)).toEqual([]);
    expect(await isListening(demo.base_url)).toBe(false);
    expect(existsSync(join(home, "demo.json"))).toBe(false);
  });

  it("delivers its signals to the launcher, because no shell is in between", () => {
    const manifest = JSON.parse(readFileSync(join(PROJECT_DIR, "package.json"), "utf8"));
    expect(manifest.scripts.start).toMatch(/^exec node /);
    expect(manifest.scripts.dev).toMatch(/^exec node /);
  });
});

describe("given a home in use", () => {
  let halyard: Halyard;
  let demo: Demo;

  beforeAll(async () => {
    halyard = launchHalyard({ home: copyOfUsedHome(), untilFileEnds: true });
    demo = await halyard.ready();
  });

  it("has the data and keys of the previous run", async () => {
    const { base_url, services, ...kept } = demo;

    expect(first).toMatchObject(kept);
    expect(await readFlags({ ...first, base_url })).toEqual({ flags: { "new-checkout": true } });
    expect(Object.keys(services)).toHaveLength(7);
    await eventually("the welcome", () => halyard.output().includes("Ctrl-C"));
    expect(printedCurlRequests(halyard.output()).map(({ method }) => method)).toEqual(["GET"]);
  });

  it("rejects a second start, names the process, and does not affect the first run", async () => {
    const second = launchHalyard({ home: halyard.home });

    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(
      `already running in ${halyard.home} (process ${halyard.pid})`,
    );
    expect(existsSync(join(halyard.home, "demo.json"))).toBe(true);
    expect(await isListening(demo.base_url)).toBe(true);
  });

  it("rejects another home on the same port before it starts anything", async () => {
    const { port } = new URL(demo.base_url);
    const home = newHome();

    const second = launchHalyard({ home, variables: { PORT: port } });

    expect(await second.exited).toBe(1);
    expect(second.output()).toContain(`Port ${port} is taken by another program.`);
    expect(second.output()).toContain("PORT=");
    expect(existsSync(join(home, "postgres"))).toBe(false);
  });

  it("leaves no process running after SIGKILL to the launcher, and starts again immediately", async () => {
    const { home } = halyard;
    const before = demo;
    const processes = processTreeOf(halyard.pid);
    await deleteFlags(demo);

    await halyard.end("SIGKILL");
    await eventually("the file with keys is gone", () => !existsSync(join(home, "demo.json")));
    halyard = launchHalyard({ home, untilFileEnds: true });

    await eventually("no process is left", () => !processes.some(isRunning));
    await eventually("the announcement of the new run", () => halyard.output().includes("Ctrl-C"));
    demo = await halyard.ready();
    expect(demo.client_key).toBe(before.client_key);
    // The project has no flag, so the command that creates one works.
    expect(printedCurlRequests(halyard.output()).map(({ method }) => method)).toEqual([
      "POST",
      "GET",
    ]);
  });

  describe("and demo data that an operator has changed", () => {
    let kept: DemoCredentials;
    beforeAll(() => {
      kept = JSON.parse(readFileSync(join(halyard.home, "credentials.json"), "utf8")).demo;
    });

    const provide = () =>
      provideDemoData(
        createOperatorApi({ baseUrl: demo.base_url, token: demo.operator_token }),
        kept,
      );
    const pathOf = {
      organization: () => `organizations/${kept.organization_id}`,
      user: () => `organizations/${kept.organization_id}/users/${kept.user_id}`,
      project: () => `organizations/${kept.organization_id}/projects/${kept.project_id}`,
      environment: () => `projects/${kept.project_id}/environments/${kept.environment_id}`,
    };
    const kinds = ["environment", "user", "project", "organization"] as const;

    async function send(method: string, path: string, body?: unknown): Promise<void> {
      const response = await fetch(`${demo.base_url}/api/v1/${path}`, {
        method,
        headers: {
          authorization: `Bearer ${demo.operator_token}`,
          "content-type": "application/json",
        },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (!response.ok) throw new Error(`${method} ${path}: ${await response.text()}`);
    }

    it.each(kinds)("finds the renamed %s", async (kind) => {
      await send("PATCH", pathOf[kind](), { name: "Renamed" });
      expect(await provide()).toEqual(kept);
    });

    it.each(kinds)("creates the deleted %s again, only once, with new keys", async (kind) => {
      const id = kept[`${kind}_id`];
      // The last owner who can sign in cannot be deleted, so the operator parts the user from the person first.
      if (kind === "user") await send("DELETE", `${pathOf.user()}/person`);
      await send("DELETE", `${pathOf[kind]()}?confirm=${id}`);
      const made = await provide();
      expect(made[`${kind}_id`]).not.toBe(id);
      expect(made.server_key).not.toBe(kept.server_key);
      kept = made;
      expect(await provide()).toEqual(kept);
    });

    it("replaces the keys of a user whose address has been changed", async () => {
      await send("PATCH", pathOf.user(), { email: "ada@example.com" });
      const made = await provide();
      expect(made.user_id).not.toBe(kept.user_id);
      expect(made.server_key).not.toBe(kept.server_key);
    });
  });

  it("stops everything after SIGKILL to the process of the run", async () => {
    const processes = processTreeOf(halyard.pid);
    const [, run = 0] = processes;

    process.kill(run, "SIGKILL");

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain(
      "Halyard ended by SIGKILL. All its processes have been stopped.",
    );
    expect(processes.filter(isRunning)).toEqual([]);
    expect(existsSync(join(halyard.home, "demo.json"))).toBe(false);
  });
});

describe("given a signal to stop during the start", () => {
  it("stops the processes that are running and exits with code 0", async () => {
    const halyard = launchHalyard({ home: copyOfUsedHome() });
    await eventually("PostgreSQL runs", () => halyard.output().includes("✓ PostgreSQL"));
    const processes = processTreeOf(halyard.pid);

    expect(await halyard.end("SIGINT")).toBe(0);

    expect(processes.filter(isRunning)).toEqual([]);
    expect(halyard.output()).not.toContain("is ready at");
  });
});

describe("given npm start in production mode over a home with demo keys", () => {
  let halyard: Halyard;

  it("rejects the start, and starts without demo data after it has removed the keys", async () => {
    const home = copyOfUsedHome();
    const credentials = join(home, "credentials.json");
    const { demo, ...others } = JSON.parse(readFileSync(credentials, "utf8"));
    // A start in development mode would create the demo data again.
    writeFileSync(credentials, JSON.stringify(others));
    const variables = { NODE_ENV: "production" };
    const rejected = launchHalyard({ home, variables });
    expect(await rejected.exited).toBe(1);
    expect(rejected.output()).toContain("HALYARD_MODE=production npm start -- --remove-demo-keys");

    halyard = launchHalyard({
      ...{ home, variables, args: ["--remove-demo-keys"] },
      untilFileEnds: true,
    });
    const started = await halyard.ready();
    expect(Object.keys(started)).toEqual(["base_url", "operator_token", "services"]);
    await eventually("the link to the next steps", () =>
      halyard.output().includes(join(PROJECT_DIR, "docs/deployment.md")),
    );
    const { base_url, operator_token } = started;
    const listed = await fetch(`${base_url}/api/v1/organizations`, {
      headers: { authorization: `Bearer ${operator_token}` },
    });
    expect(await listed.json()).toMatchObject({ organizations: [{ id: demo.organization_id }] });
    const headers = { authorization: `Bearer ${demo.server_key}` };
    await eventually("the key is revoked", async () => {
      const { status } = await fetch(`${base_url}/api/v1/flags`, { headers });
      return status === 401;
    });
  });

  it("ends the run when the data are deleted, instead of starting with an empty database", async () => {
    const cluster = join(halyard.home, "postgres/cluster");
    const pid = Number.parseInt(readFileSync(join(cluster, "postmaster.pid"), "utf8"), 10);

    renameSync(cluster, `${cluster}.moved`);
    process.kill(pid, "SIGKILL");

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain(
      `PostgreSQL died 5 times within a minute. PostgreSQL's data in ${cluster} are missing.`,
    );
    expect(existsSync(cluster)).toBe(false);
  });
});

describe("given a damaged home", () => {
  it("reports the damage and how to start from scratch", async () => {
    const home = copyOfUsedHome();
    const cluster = join(home, "postgres/cluster");
    rmSync(join(cluster, "global/pg_control"));

    const halyard = launchHalyard({ home });

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain(`mv '${cluster}' '${cluster}.damaged'`);
  });
});

describe("given external servers that do not answer", () => {
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

  it("says how an address of NATS looks that is no URL", async () => {
    const variables = { NATS_URL: "nats://127.0.0.1:99999" };
    const halyard = launchHalyard({ home: newHome(), variables });

    expect(await halyard.exited).toBe(1);
    expect(halyard.output()).toContain("NATS_URL must look like nats://host:4222");
  });
});
