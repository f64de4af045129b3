import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { fileURLToPath } from "node:url";
import { HalyardProvider } from "@halyard/openfeature-server";
import { eventually } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { type EvaluationContext, OpenFeature, ProviderEvents } from "@openfeature/server-sdk";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import type { ClientSystem } from "../../src/system/client-system.ts";
import { createOpenFeatureTenant, type OpenFeatureTenant } from "../../src/system/openfeature.ts";

/** Halyard's own providers for OpenFeature, on a server and on a page in a browser. */
export function describeHalyardProviders(given: () => ClientSystem): void {
  describe("given a server with Halyard's provider", () => describeServer(given));
  describeInChromium("given a web page with Halyard's provider", () => describeWebPage(given));
}

const ignore = () => undefined;
const logger = { info: ignore, warn: ignore, error: ignore };

function describeServer(given: () => ClientSystem): void {
  let running: OpenFeatureTenant;
  const client = OpenFeature.getClient("halyard");
  const ofrep = OpenFeature.getClient("ofrep");
  beforeAll(async () => {
    running = await createOpenFeatureTenant(given());
    const { gateway, tenant } = running;
    const authorization = `Bearer ${tenant.clientKey}`;
    await Promise.all([
      OpenFeature.setProviderAndWait(
        "halyard",
        new HalyardProvider({ baseUrl: gateway.url, serverKey: tenant.readerKey, logger }),
      ),
      OpenFeature.setProviderAndWait(
        "ofrep",
        new OFREPProvider({ baseUrl: gateway.url, headers: [["Authorization", authorization]] }),
      ),
    ]);
  });
  afterAll(() => OpenFeature.clearProviders());

  const users: EvaluationContext[] = [
    {},
    { targetingKey: "u1", country: "DE" },
    { targetingKey: "u2", country: "FR", id: "u1" },
    { targetingKey: "u3", country: ["FR", "DE"], since: new Date(), address: { country: "DE" } },
    { id: "u4", country: null },
    { targetingKey: ["u5"] } as unknown as EvaluationContext,
  ];
  it.each(["always", "never", "half", "germany", "unknown"])(
    "has the details of the OFREP provider (%s)",
    async (flagKey) => {
      for (const user of users) {
        const [ours, theirs] = await Promise.all(
          [client, ofrep].map((one) => one.getBooleanDetails(flagKey, true, user)),
        );
        const { value, variant, reason, errorCode } = theirs ?? {};
        expect({ user, ...ours }).toMatchObject({ user, value, reason });
        expect([ours?.variant, ours?.errorCode]).toEqual([variant, errorCode]);
      }
    },
  );

  it("receives a change", async () => {
    const changed: (string[] | undefined)[] = [];
    client.addHandler(ProviderEvents.ConfigurationChanged, (details) =>
      changed.push(details?.flagsChanged),
    );
    await running.change("never", { enabled: true });
    await eventually(() => client.getBooleanValue("never", false));
    expect(changed).toContainEqual(["never"]);
  });
}

const program = `
  import { HalyardProvider } from "@halyard/openfeature-web";
  import { OpenFeature, ProviderEvents } from "@openfeature/web-sdk";
  const client = OpenFeature.getClient();
  const changes = [];
  client.addHandler(ProviderEvents.ConfigurationChanged, (details) => changes.push(details.flagsChanged));
  window.shop = {
    client,
    changes,
    start: (baseUrl, clientKey, context) =>
      OpenFeature.setProviderAndWait(
        new HalyardProvider({ baseUrl, clientKey, readyTimeoutMs: 2000 }),
        context,
      ),
    become: (context) => OpenFeature.setContext(context),
  };
`;

type Shop = {
  client: {
    providerStatus: string;
    getBooleanDetails(key: string, fallback: boolean): { value: boolean; reason: string };
  };
  changes: string[][];
  start(baseUrl: string, clientKey: string, context: object): Promise<void>;
  become(context: object): Promise<void>;
};
type ShopWindow = { shop: Shop };

async function bundle(): Promise<string> {
  const { outputFiles } = await build({
    stdin: { contents: program, resolveDir: fileURLToPath(new URL(".", import.meta.url)) },
    bundle: true,
    format: "esm",
    conditions: ["halyard-source"],
    write: false,
  });
  return outputFiles[0]?.text ?? "";
}

function describeWebPage(given: () => ClientSystem): void {
  let running: OpenFeatureTenant;
  let browser: Browser;
  let site: Server;
  let page: Page;
  const german = { targetingKey: "u1", country: "DE" };

  beforeAll(async () => {
    const script = await bundle();
    [running, browser] = await Promise.all([createOpenFeatureTenant(given()), startChromium()]);
    site = createServer((_, response) => {
      response.writeHead(200, { "content-type": "text/html" });
      response.end(`<!doctype html><title>A shop</title><script type="module">${script}</script>`);
    });
    site.listen(0, "127.0.0.1");
    await once(site, "listening");
    page = await browser.context.newPage();
    await page.goto(`http://localhost:${(site.address() as { port: number }).port}/`);
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
  });

  const start = (clientKey: string) =>
    page.evaluate(
      ([baseUrl, ...others]) =>
        (globalThis as unknown as ShopWindow).shop.start(baseUrl, ...others),
      [running.gateway.url, clientKey, german] as const,
    );
  const details = (flagKey: string) =>
    page.evaluate(
      (key) => (globalThis as unknown as ShopWindow).shop.client.getBooleanDetails(key, false),
      flagKey,
    );
  const status = () =>
    page.evaluate(() => (globalThis as unknown as ShopWindow).shop.client.providerStatus);

  it("has the user's values, and receives a change", async () => {
    await start(running.tenant.clientKey);
    expect(await details("germany")).toMatchObject({ value: true, reason: "UNKNOWN" });
    await running.change("never", { enabled: true });
    await eventually(async () => (await details("never")).value);
    const changes = await page.evaluate(() => (globalThis as unknown as ShopWindow).shop.changes);
    expect(changes).toEqual([["never"]]);
  });

  it("has another user's values after a sign-in", async () => {
    await page.evaluate(() =>
      (globalThis as unknown as ShopWindow).shop.become({ targetingKey: "u2", country: "FR" }),
    );
    expect(await details("germany")).toMatchObject({ value: false, reason: "UNKNOWN" });
  });

  it("starts with the stored values while Halyard is unreachable", async () => {
    await page.reload();
    await page.route(`${running.gateway.url}/**`, (route) => route.abort());
    await start(running.tenant.clientKey);
    expect(await details("germany")).toMatchObject({ value: true, reason: "CACHED" });
    await eventually(async () => (await status()) === "STALE");
    await page.unroute(`${running.gateway.url}/**`);
    await eventually(async () => (await status()) === "READY");
  });

  it("fails immediately with an invalid key", async () => {
    await page.evaluate(() => localStorage.clear());
    await page.reload();
    await expect(start(`hc_${"a".repeat(16)}_${"b".repeat(43)}`)).rejects.toThrow();
    expect(await status()).toBe("FATAL");
  });
}
