import { type ChildProcess, spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, afterEach, beforeAll, expect, it } from "@jest/globals";
import { type FakeEdge, startFakeEdge } from "../../browser-sdk/test/support/fake-edge.ts";

/** The pages of the examples, started by their commands, as a user sees them. */
const folder = fileURLToPath(new URL("..", import.meta.url));

describeInChromium("given the example pages", () => {
  let browser: Browser;
  let edge: FakeEdge;
  let home: string;
  let example: ChildProcess | undefined;

  beforeAll(async () => {
    [browser, edge] = await Promise.all([startChromium(), startFakeEdge()]);
    home = mkdtempSync(join(tmpdir(), "halyard-examples-"));
    const keys = { client_key: `hc_abcdefghijklmnop_${"s".repeat(43)}`, server_key: "hs_secret" };
    writeFileSync(join(home, "demo.json"), JSON.stringify({ base_url: edge.url, ...keys }));
  });
  afterEach(() => {
    if (example?.pid !== undefined) process.kill(-example.pid);
  });
  afterAll(async () => {
    await browser?.close();
    await edge?.close();
    rmSync(home, { recursive: true, force: true });
  });

  /** Starts an example and returns the address that it prints. */
  async function start(name: string): Promise<string> {
    let output = "";
    example = spawn("npm", ["run", name], {
      ...{ cwd: folder, detached: true, stdio: ["ignore", "pipe", "pipe"] },
      env: { ...process.env, HALYARD_HOME: home, PORT: "0" },
    });
    for (const stream of [example.stdout, example.stderr])
      stream?.on("data", (data) => {
        output += data;
      });
    await eventually(() => output, { until: (text) => text.includes("Open http") });
    return /http:\/\/localhost:\d+/.exec(output)?.[0] ?? "";
  }

  it.each(["browser", "react"])("%s shows the flag, a change and another user", async (name) => {
    edge.setFlags(({ id }) => ({ "new-checkout": id === "bruno" }));
    const page = await browser.context.newPage();
    await page.goto(await start(name));
    const shows = (text: string) =>
      eventually(() => page.locator("output").textContent({ timeout: 1_000 }), {
        until: (shown) => shown === text,
      });
    await shows("old");
    await page.locator("select").selectOption("bruno");
    await shows("new");
    edge.setFlags({ "new-checkout": false });
    await shows("old");
    expect(await page.content()).not.toContain("hs_secret");
  });
});
