import { fileURLToPath } from "node:url";
import { eventually } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, afterEach, beforeAll, beforeEach, expect, it } from "@jest/globals";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import type { Client } from "../src/client.ts";
import type { ClientOptions } from "../src/options.ts";
import { type FakeEdge, startFakeEdge } from "./support/fake-edge.ts";
import { type Site, startSite } from "./support/site.ts";
import { clientKey } from "./support/started-client.ts";

/** The client in a real browser, on a page of another origin, with its fetch, CORS and localStorage. */
describeInChromium("given the browser SDK in a page", () => {
  let browser: Browser;
  let edge: FakeEdge;
  let site: Site;
  let page: Page;

  beforeAll(async () => {
    const entryPoints = [fileURLToPath(new URL("support/page.ts", import.meta.url))];
    const bundling = { bundle: true, minify: true, write: false, format: "esm" } as const;
    const { outputFiles } = await build({
      ...{ entryPoints, ...bundling, target: "es2022", conditions: ["halyard-source"] },
    });
    [browser, edge, site] = await Promise.all([
      startChromium(),
      startFakeEdge(),
      startSite(outputFiles[0]?.text ?? ""),
    ]);
  });
  beforeEach(async () => {
    edge.setFlags(({ id }) => ({ checkout: id === "jörg 🗼" }));
    edge.requests.length = 0;
    page = await browser.context.newPage();
    await page.goto(site.url);
  });
  afterEach(async () => {
    await browser.context.setOffline(false);
    edge.answer("stream", undefined);
    edge.answer("values", undefined);
    await page.evaluate(() => localStorage.clear());
    await page.close();
  });
  afterAll(async () => {
    await browser?.close();
    await Promise.all([edge?.close(), site?.close()]);
  });

  const startIn = (tab: Page, options: PageOptions) =>
    tab.evaluate((given) => (globalThis as unknown as Window).start(given), {
      ...{ baseUrl: edge.url, clientKey, ...options },
    });
  const start = (options: PageOptions = {}) => startIn(page, options);
  const isEnabled = (tab = page) =>
    tab.evaluate(() => (globalThis as unknown as Window).client.isEnabled("checkout"));
  const status = () => page.evaluate(() => (globalThis as unknown as Window).client.status);
  const setContext = (context: { id: string }) =>
    page.evaluate((given) => (globalThis as unknown as Window).client.setContext(given), context);

  it("streams the values of a user, and switches the user", async () => {
    expect(await start({ context: { id: "jörg 🗼" } })).toBe(true);
    expect(await isEnabled()).toBe(true);
    expect(await setContext({ id: "ada" })).toBe(true);
    expect(await isEnabled()).toBe(false);
    edge.setFlags({ checkout: true });
    await eventually(() => isEnabled());
    expect(await status()).toMatchObject({ source: "stream", current: true });
  });

  it("polls and revalidates where streams are refused", async () => {
    edge.answer("stream", { status: 429, headers: { "retry-after": "1" } });
    expect(await start({ context: { id: "jörg 🗼" } })).toBe(true);
    await page.evaluate(() => window.dispatchEvent(new Event("online")));
    await eventually(() => edge.requests.filter(({ route }) => route === "values").length === 2);
    expect(edge.requests.at(-1)?.headers["if-none-match"]).toMatch(/^".+"$/);
    await eventually(status, { until: ({ current, source }) => current && source === "poll" });
  });

  it("starts offline after a reload, with the values of the same user", async () => {
    await start({ context: { id: "jörg 🗼" } });
    edge.answer("stream", { status: 503 });
    edge.answer("values", { status: 503 });
    await page.reload();
    const ready = start({ context: { id: "jörg 🗼" } });
    await eventually(() => isEnabled());
    expect(await status()).toMatchObject({ source: "cache", current: false });
    edge.answer("stream", undefined);
    expect(await ready).toBe(true);
    const stored = await page.evaluate(() => JSON.stringify({ ...localStorage }));
    expect(stored).not.toMatch(/jörg|🗼|hc_\w{8}/);
  });

  it("is stale while the browser is offline, and current again afterwards", async () => {
    await start();
    await browser.context.setOffline(true);
    await eventually(status, { until: ({ current }) => !current });
    edge.setFlags({ checkout: true });
    await browser.context.setOffline(false);
    await eventually(() => isEnabled());
    expect(await status()).toMatchObject({ current: true });
  });

  // Browsers open six connections to a server with HTTP/1.1.
  it("gives eight tabs of one user the values and each change over one stream", async () => {
    const open = async () => {
      const tab = await browser.context.newPage();
      await tab.goto(site.url);
      return tab;
    };
    const streams = () => edge.streams().filter(({ context }) => context.id === "grace");
    const others = await Promise.all(Array.from({ length: 7 }, open));
    edge.setFlags({ checkout: false });
    for (const tab of [page, ...others])
      expect(await startIn(tab, { sharesStreams: true, context: { id: "grace" } })).toBe(true);
    const allAre = (enabled: boolean) =>
      eventually(async () =>
        (await Promise.all(others.map(isEnabled))).every((is) => is === enabled),
      );
    edge.setFlags({ checkout: true });
    await allAre(true);
    expect(streams()).toHaveLength(1);
    // The first tab leads. Another one continues.
    await page.goto("about:blank");
    edge.setFlags({ checkout: false });
    await allAre(false);
    await eventually(() => streams().length === 1);
    await Promise.all(others.map((tab) => tab.close()));
    await page.goto(site.url);
  });

  it("gives the tabs of one user the objects of typed flags, also from the storage", async () => {
    const json = '{"__proto__":{"admin":true},"seats":5}';
    const limits = { value: JSON.parse(json), variation: "small" };
    const read = (tab: Page) =>
      tab.evaluate(() => {
        const { client } = globalThis as unknown as Window;
        return JSON.stringify(client.getObject("limits", {}));
      });
    edge.setFlags({ limits });
    const other = await browser.context.newPage();
    await other.goto(site.url);
    for (const tab of [page, other]) {
      expect(await startIn(tab, { sharesStreams: true })).toBe(true);
      expect(await read(tab)).toBe(json);
    }
    // The stream of an earlier page ends a moment after the page.
    await eventually(() => edge.streams().length === 1);
    await other.close();
    edge.answer("stream", { status: 503 });
    edge.answer("values", { status: 503 });
    await page.reload();
    const ready = start();
    await eventually(() => read(page), { until: (found) => found === json });
    edge.answer("stream", undefined);
    expect(await ready).toBe(true);
  });

  it("stops with an invalid key", async () => {
    edge.answer("stream", { status: 401 });
    expect(await start()).toBe(false);
    expect(await status()).toMatchObject({ connection: "stopped" });
  });
});

type PageOptions = Pick<ClientOptions, "context"> & { sharesStreams?: boolean };
type Window = { client: Client; start(options: PageOptions): Promise<boolean> };
