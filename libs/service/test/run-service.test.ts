import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { Agent, get } from "node:http";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { afterEach, describe, expect, it } from "@jest/globals";

/** Tests of starting and stopping, with real processes. */
const program = fileURLToPath(new URL("service-under-test.ts", import.meta.url));

type Line = Record<string, unknown>;
type Started = {
  child: ChildProcess;
  url: string;
  metricsUrl: string;
  lines: Line[];
  logged: (message: string) => Promise<Line>;
  errors: () => string;
  exited: Promise<number | null>;
};

const children: ChildProcess[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
});

function spawnService(...args: string[]) {
  const child = fork(program, args, { stdio: ["ignore", "pipe", "pipe", "ipc"], execArgv: [] });
  children.push(child);
  const exited = once(child, "exit").then(([code]) => code as number | null);
  let errors = "";
  child.stderr?.on("data", (chunk) => {
    errors += chunk;
  });
  return { child, exited, errors: () => errors };
}

async function startService(...args: string[]): Promise<Started> {
  const { child, exited, errors } = spawnService(...args);
  const written = createInterface({ input: child.stdout as NodeJS.ReadableStream });
  const allRead = once(written, "close");
  const lines: Line[] = [];
  const waiting: { message: string; resolve: (line: Line) => void }[] = [];
  written.on("line", (text) => {
    const line = JSON.parse(text) as Line;
    lines.push(line);
    for (const { message, resolve } of waiting) if (line.msg === message) resolve(line);
  });
  const logged = (message: string) =>
    new Promise<Line>((resolve) => {
      const present = lines.find(({ msg }) => msg === message);
      if (present === undefined) waiting.push({ message, resolve });
      else resolve(present);
    });
  const [announced] = await once(child, "message");
  expect(announced.type).toBe("listening");
  expect(await logged("listening")).toMatchObject({
    url: announced.url,
    metrics_url: announced.metrics_url,
  });
  return {
    child,
    url: announced.url,
    metricsUrl: announced.metrics_url,
    lines,
    logged,
    errors,
    // The last lines may still be in the pipe when the process has ended.
    exited: Promise.all([exited, allRead]).then(([code]) => code),
  };
}

describe("given a running service", () => {
  it("serves metrics and probes on a separate port, and probes on the API's port as well", async () => {
    const { url, metricsUrl } = await startService("ready");
    for (const path of ["/", "/metrics"]) {
      const answered = await fetch(metricsUrl + path);
      expect(answered.headers.get("x-content-type-options")).toBe("nosniff");
      const text = await answered.text();
      expect(text).toContain('process_cpu_seconds_total{service="under-test"}');
    }
    for (const base of [url, metricsUrl]) {
      expect(await (await fetch(`${base}/healthz`)).json()).toEqual({ status: "ok" });
      const ready = await fetch(`${base}/readyz`);
      expect(ready.status).toBe(200);
      expect(await ready.json()).toEqual({ ready: true, waiting_for: "nothing" });
    }
    const unknown = await fetch(`${metricsUrl}/unknown`);
    expect(unknown.status).toBe(404);
    expect(unknown.headers.get("x-content-type-options")).toBe("nosniff");
    const { error } = (await unknown.json()) as { error: object };
    expect(Object.keys(error).sort()).toEqual(["category", "code", "message", "status"]);
  });

  it("returns 503 while it is not ready", async () => {
    const { url, metricsUrl } = await startService("unready");
    expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${metricsUrl}/readyz`)).status).toBe(503);
    expect((await fetch(`${url}/healthz`)).status).toBe(200);
  });

  it.each(["SIGTERM", "SIGINT"] as const)(
    "finishes an open request after %s, closes in reverse order and exits 0",
    async (signal) => {
      const { child, url, lines, logged, exited } = await startService("ready");
      const slow = fetch(`${url}/slow`);
      await logged("slow request under way");
      child.kill(signal);
      const answered = await slow;
      expect(await answered.text()).toBe("finished");
      expect(await exited).toBe(0);
      const messages = lines.map(({ msg, name }) => (name === undefined ? msg : `${msg} ${name}`));
      expect(messages.slice(-6)).toEqual([
        "stopping",
        "draining",
        "request",
        "closed second",
        "closed first",
        "stopped",
      ]);
    },
  );

  it("does not wait for idle connections", async () => {
    const { child, url, exited } = await startService("ready");
    const agent = new Agent({ keepAlive: true });
    const [response] = await once(get(`${url}/fast`, { agent }), "response");
    response.resume();
    await once(response, "end");
    child.kill("SIGTERM");
    // The connection would wait for 72 s, and a service that stops for longer than 18 s exits with 1.
    expect(await exited).toBe(0);
    agent.destroy();
  });

  it("does not wait for a connection that becomes idle while it stops", async () => {
    const { child, url, logged, exited } = await startService("ready");
    const agent = new Agent({ keepAlive: true });
    const responded = once(get(`${url}/slow`, { agent }), "response");
    await logged("slow request under way");
    child.kill("SIGTERM");
    const [response] = await responded;
    response.resume();
    expect(await exited).toBe(0);
    agent.destroy();
  });

  it("stops when its launcher ends", async () => {
    const { child, exited } = await startService("ready");
    child.disconnect();
    expect(await exited).toBe(0);
  });

  it("exits 1 if a resource fails to close, after it has closed the others", async () => {
    const { child, lines, exited } = await startService("fails-to-close");
    child.kill("SIGTERM");
    expect(await exited).toBe(1);
    expect(lines.filter(({ msg }) => msg === "closed").map(({ name }) => name)).toEqual([
      "second",
      "first",
    ]);
    expect(lines.at(-1)).toMatchObject({
      msg: "stopping failed",
      err: { code: "EFAULT" },
    });
  });

  it("exits 1 after an unhandled rejection, and logs the reason", async () => {
    const { url, lines, exited } = await startService("ready");
    await fetch(`${url}/rejects`).catch(() => undefined);
    expect(await exited).toBe(1);
    expect(lines.at(-1)).toMatchObject({ level: "fatal", err: { code: "EFAULT" } });
  });

  it.each([
    ["a route that fails", "/throws", "request failed"],
    ["a route that responds twice", "/sends-twice", "request"],
    ["an uncaught error", "/throws-later", "uncaught exception"],
    ["an unhandled rejection", "/rejects", "unhandled rejection"],
  ])("writes none of the texts of an error: %s", async (_what, path, message) => {
    const { url, lines, logged, errors } = await startService("ready");
    await fetch(`${url}${path}?token=s3cret-mark`).catch(() => undefined);
    await logged(message);
    expect(JSON.stringify(lines)).not.toContain("s3cret-mark");
    expect(errors()).toBe("");
  });
});

describe("given a service that cannot start", () => {
  it.each(["fails-to-start", "fails-beside-start"])(
    "prints type, code and position of the error, and none of its texts: %s",
    async (behavior) => {
      const { exited, errors } = spawnService(behavior);
      expect(await exited).toBe(1);
      expect(errors()).toMatch(/^Error EFAULT\n {4}at .*service-under-test\.ts:\d+:\d+\)?\n/);
      expect(errors()).not.toContain("s3cret-mark");
    },
  );

  it("prints all problems of its configuration as sentences and exits 2", async () => {
    const { exited, errors } = spawnService("misconfigured");
    expect(await exited).toBe(2);
    expect(errors()).toBe(
      "The configuration has problems:\n  PORT must be a port.\n  HOST is not set.\n",
    );
  });

  it("prints a solution when its port is in use, and exits 1", async () => {
    const { url } = await startService("ready");
    const { exited, errors } = spawnService("ready", new URL(url).port);
    expect(await exited).toBe(1);
    expect(errors()).toMatch(
      /^The address 127.0.0.1:\d+ is already in use: stop the other process, or set PORT to a free port/,
    );
  });
});
