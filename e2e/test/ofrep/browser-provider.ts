import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { eventually } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createOpenFeatureTenant, type OpenFeatureTenant } from "../../src/system/openfeature.ts";

/**
 * The official web provider in a real browser, on a page of another origin, with the browser's EventSource and
 * localStorage, and its rules for cross-origin requests.
 */
const packages = new URL("../../../node_modules/@openfeature/", import.meta.url);
const modules: Record<string, string> = {
  core: "core/dist/esm/index.js",
  "web-sdk": "web-sdk/dist/esm/index.js",
  "ofrep-web-provider": "ofrep-web-provider/index.esm.js",
  "ofrep-core": "ofrep-web-provider/node_modules/@openfeature/ofrep-core/index.esm.js",
};
const imports = Object.fromEntries(
  Object.keys(modules).map((name) => [`@openfeature/${name}`, `/${name}.js`]),
);
const html = `<!doctype html><title>A shop</title>
<script type="importmap">${JSON.stringify({ imports })}</script>
<script type="module">
  import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
  import { OpenFeature, ProviderEvents } from "@openfeature/web-sdk";
  const client = OpenFeature.getClient();
  const changes = [];
  client.addHandler(ProviderEvents.ConfigurationChanged, (details) => changes.push(details.flagsChanged));
  window.shop = {
    client,
    changes,
    start: (baseUrl, key, context) =>
      OpenFeature.setContext(context).then(() =>
        OpenFeature.setProviderAndWait(
          new OFREPWebProvider({ baseUrl, headers: [["Authorization", "Bearer " + key]] }),
        ),
      ),
    become: (context) => OpenFeature.setContext(context),
  };
</script>`;

type Shop = {
  client: {
    providerStatus: string;
    getBooleanDetails(key: string, fallback: boolean): { value: boolean; reason: string };
  };
  changes: string[][];
  start(baseUrl: string, key: string, context: object): Promise<void>;
  become(context: object): Promise<void>;
};
type ShopWindow = { shop: Shop };

export function describeBrowserProvider(given: () => ClientSystem): void {
  describeInChromium("given a web page with OpenFeature's provider", () => describeWebPage(given));
}

function describeWebPage(given: () => ClientSystem): void {
  let running: OpenFeatureTenant;
  let browser: Browser;
  let site: Server;
  let page: Page;
  const answered: { path: string; status: number }[] = [];

  beforeAll(async () => {
    [running, browser] = await Promise.all([createOpenFeatureTenant(given()), startChromium()]);
    site = createServer((request, response) => {
      const file = modules[request.url?.slice(1, -".js".length) ?? ""];
      const type = file === undefined ? "text/html" : "text/javascript";
      response.writeHead(200, { "content-type": type });
      response.end(file === undefined ? html : readFileSync(new URL(file, packages)));
    });
    site.listen(0, "127.0.0.1");
    await once(site, "listening");
    page = await browser.context.newPage();
    page.on("response", (response) => {
      const { origin, pathname } = new URL(response.url());
      if (origin === running.gateway.url && response.request().method() !== "OPTIONS")
        answered.push({ path: pathname, status: response.status() });
    });
    await page.goto(`http://localhost:${(site.address() as { port: number }).port}/`);
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  const start = (key: string, context: object) =>
    page.evaluate(
      ([baseUrl, ...others]) =>
        (globalThis as unknown as ShopWindow).shop.start(baseUrl, ...others),
      [running.gateway.url, key, context] as const,
    );
  const details = (flagKey: string) =>
    page.evaluate(
      (key) => (globalThis as unknown as ShopWindow).shop.client.getBooleanDetails(key, false),
      flagKey,
    );
  const changes = () =>
    page.evaluate(() => (globalThis as unknown as ShopWindow).shop.changes.flat());
  const streamIsOpen = () =>
    eventually(() =>
      answered.some(({ path, status }) => path.endsWith("/stream") && status === 200),
    );

  it("has the user's values, and receives a change", async () => {
    await start(running.tenant.clientKey, { targetingKey: "u1", country: "DE" });
    expect(await details("germany")).toMatchObject({ value: true, reason: "TARGETING_MATCH" });
    expect(await details("never")).toMatchObject({ value: false, reason: "DISABLED" });
    await streamIsOpen();
    await running.change("never", { enabled: true });
    await eventually(async () => (await details("never")).value);
    await eventually(async () => (await changes()).includes("never"));
  });

  it("has another user's values after a sign-in", async () => {
    await page.evaluate(() =>
      (globalThis as unknown as ShopWindow).shop.become({ targetingKey: "u2", country: "FR" }),
    );
    expect(await details("germany")).toMatchObject({ value: false, reason: "DEFAULT" });
  });

  it("starts with the last values after a reload, revalidates them, and opens a stream", async () => {
    answered.length = 0;
    await page.reload();
    await start(running.tenant.clientKey, { targetingKey: "u2", country: "FR" });
    expect(await details("germany")).toMatchObject({ value: false, reason: "CACHED" });
    await eventually(() => answered.some(({ status }) => status === 304));
    await streamIsOpen();
    await running.change("never", { enabled: false });
    await eventually(async () => !(await details("never")).value);
  });

  it("reconnects when its edges are restarted, and receives the changes that it missed", async () => {
    for (const edge of running.system.edges) await edge.process.kill();
    await running.change("always", { enabled: false });
    for (const edge of running.system.edges) await edge.start();
    await eventually(async () => !(await details("always")).value);
  });

  it("fails immediately with an invalid key", async () => {
    await page.reload();
    await expect(start("nonsense", { targetingKey: "u3" })).rejects.toThrow();
    const status = await page.evaluate(
      () => (globalThis as unknown as ShopWindow).shop.client.providerStatus,
    );
    expect(status).toBe("FATAL");
  });
}
