import { type ChildProcess, execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { call, eventually } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { demoOf } from "../../src/stories/page-shell.ts";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { Edge } from "../../src/system/system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

const projectRoot = fileURLToPath(new URL("../../../", import.meta.url));

/** The applications of `clients/examples`, started by the commands of their pages. */
export function describeExamples(given: () => ClientSystem): void {
  describe("the server", () => {
    let example: Example;
    beforeAll(async () => {
      example = await startExample(given(), { name: "node" });
    });

    const responseFor = async (user: string) =>
      (await fetch(`${example.url}/?user=${user}`)).text();

    it("decides by a change without a restart", async () => {
      const response = () => responseFor("anna");
      expect(await response()).toBe("anna gets the old checkout in royalblue\n");
      await example.toggle();
      await eventually(response, {
        until: (text) => text === "anna gets the new checkout in royalblue\n",
      });
    });

    it("has another color for the other half of the users", async () => {
      expect(await responseFor("bruno")).toMatch(/ in seagreen\n$/);
    });
  });

  describeInChromium("given the pages of the examples", () => {
    let browser: Browser;
    beforeAll(async () => {
      browser = await startChromium();
    });
    afterAll(() => browser?.close());

    for (const name of ["browser", "react"])
      describe(`the page ${name}`, () => describePage(name, () => ({ ...given(), browser })));
    describe("a page in a plan without a free stream", () =>
      describePolling(() => ({ ...given(), browser })));
  });
}

type InBrowser = () => ClientSystem & { browser: Browser };

function describePage(name: string, given: InBrowser): void {
  let example: Example;
  let edge: Edge;
  let page: Page;
  const errors: string[] = [];

  beforeAll(async () => {
    example = await startExample(given(), { name });
    edge = given().system.edges[0] as Edge;
    page = await given().browser.context.newPage();
    page.on("console", (message) => errors.push(message.text()));
    await page.goto(example.url);
  });

  const shows = (text: string) =>
    eventually(() => page.locator("output").textContent({ timeout: 1_000 }), {
      until: (shown) => shown === text,
      // The longest wait between two attempts of a client is 30 s.
      withinMs: 40_000,
    });

  const color = () => page.locator("output").evaluate((element) => getComputedStyle(element).color);

  it("shows the values, a change without a reload, and the values of another user", async () => {
    await shows("old");
    await example.toggle();
    await shows("new");
    expect(await color()).toBe("rgb(65, 105, 225)");
    await example.setRules([{ attribute: "id", operator: "equals", value: "bruno" }]);
    await shows("old");
    await page.locator("select").selectOption("bruno");
    await shows("new");
    expect(await color()).toBe("rgb(46, 139, 87)");
    expect(await page.content()).not.toContain(example.tenant.serverKey);
  });

  it("keeps its values without the edge, also after a reload, and then shows the change", async () => {
    await example.setRules([]);
    await connectDirectly(page, { baseUrl: edge.url, clientKey: example.tenant.clientKey });
    await page.reload();
    await shows("new");
    await edge.process.kill();
    await example.toggle();
    await page.reload();
    await shows("new");
    await edge.start();
    await shows("old");
  });

  it("keeps its values after the key was revoked, and logs the reason", async () => {
    await example.toggle();
    await shows("new");
    await example.revokeClientKey();
    await eventually(() => errors, {
      until: (lines) =>
        lines.includes(`Halyard: Status 401 from ${edge.url}; stopped. Check the client key.`),
    });
    await shows("new");
  });
}

function describePolling(given: InBrowser): void {
  let example: Example;
  /** The only stream of the plan. Without a reference to it, Node.js would close it. */
  let taken: Response;

  beforeAll(async () => {
    example = await startExample(given(), { name: "browser", plan: "free" });
    const url = `${given().gateway.url}/api/v1/sdk/stream`;
    const headers = { authorization: `Bearer ${example.tenant.clientKey}` };
    taken = await fetch(url, { headers });
    expect(taken.status).toBe(200);
  });
  afterAll(() => taken?.body?.cancel());

  it("polls, and the edge confirms the values by their ETag", async () => {
    const page = await given().browser.context.newPage();
    const statuses: number[] = [];
    page.on("response", (response) => {
      if (response.url().endsWith("/api/v1/sdk/values")) statuses.push(response.status());
    });
    await page.goto(example.url);
    const text = () => page.locator("small").textContent({ timeout: 1_000 });
    await eventually(text, {
      until: (shown) => shown === "current, from poll",
      withinMs: 40_000,
    });
    await page.evaluate(() =>
      (globalThis as unknown as EventTarget).dispatchEvent(new Event("online")),
    );
    await eventually(() => statuses, { until: ([, second]) => second === 304 });
    expect(statuses).toEqual([200, 304]);
  });
}

/**
 * Makes a page connect to another address than the gateway. The page's own assignment to the variable then has no
 * effect.
 */
async function connectDirectly(
  page: Page,
  options: { baseUrl: string; clientKey: string },
): Promise<void> {
  await page.addInitScript((value) => {
    Object.defineProperty(globalThis, "halyardOptions", { value });
  }, options);
}

/** A running example with its own tenant. It ends with the system. */
type Example = {
  url: string;
  tenant: Tenant;
  /** Turns the flag on or off, by the command of the examples. */
  toggle(): Promise<void>;
  /** Sets the conditions of the flag's only rule. */
  setRules(conditions: readonly object[]): Promise<void>;
  revokeClientKey(): Promise<void>;
};

async function startExample(
  { system, gateway }: ClientSystem,
  options: { name: string; plan?: string },
): Promise<Example> {
  const tenant = await createTenant(gateway.url, options);
  const home = mkdtempSync(join(tmpdir(), "halyard-examples-"));
  writeFileSync(join(home, "demo.json"), JSON.stringify(demoOf(tenant, gateway.url)));
  const started = { cwd: projectRoot, env: { ...process.env, HALYARD_HOME: home, PORT: "0" } };
  const commandOf = (script: string) => ["run", script, "--workspace", "clients/examples"];
  // npm does not pass on signals, so the example ends with its process group.
  const child = spawn("npm", commandOf(options.name), { ...started, detached: true });
  const closed = once(child, "close");
  system.endsWithSystem(async () => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid);
    await closed;
    rmSync(home, { recursive: true, force: true });
  });
  const key = tenant.serverKey;
  const keysUrl = `${gateway.url}/api/v1/projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;

  return {
    url: await printedUrl(child),
    tenant,
    async toggle() {
      await promisify(execFile)("npm", commandOf("toggle"), started);
    },
    async setRules(conditions) {
      const { flags } = await must(`${gateway.url}/api/v1/flags?key=new-checkout`, { key });
      const rules = conditions.length === 0 ? [] : [{ conditions }];
      const body = { targeting_rules: rules };
      await must(`${gateway.url}/api/v1/flags/${flags[0].id}`, { method: "PATCH", key, body });
    },
    async revokeClientKey() {
      const { keys } = await must(keysUrl, { key });
      const { id } = keys.find(({ kind }: { kind: string }) => kind === "client");
      const answer = await call(`${keysUrl}/${id}`, { method: "DELETE", key });
      expect(answer.status).toBe(204);
    },
  };
}

/** Returns the address that an example prints. */
async function printedUrl(child: ChildProcess): Promise<string> {
  let output = "";
  for (const stream of [child.stdout, child.stderr])
    stream?.on("data", (data) => {
      output += data;
    });
  const address = /Open (http:\/\/localhost:\d+)/;
  await eventually(() => output, { until: (text) => address.test(text) });
  return address.exec(output)?.[1] ?? "";
}
