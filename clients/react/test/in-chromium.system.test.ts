import { fileURLToPath } from "node:url";
import { eventually } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { build } from "esbuild";
import type { Page } from "playwright-core";
import { type FakeEdge, startFakeEdge } from "../../browser-sdk/test/support/fake-edge.ts";
import { type Site, startSite } from "../../browser-sdk/test/support/site.ts";

/** The oldest and the newest version of React that the package supports, with the replaced packages. */
const versions = Object.entries({
  "18.2": { react: "react-18", "react-dom": "react-dom-18" },
  "19": {},
});

/** Hooks in a page, in strict mode. */
describeInChromium("given React in a page", () => {
  let browser: Browser;
  let edge: FakeEdge;
  beforeAll(async () => {
    [browser, edge] = await Promise.all([startChromium(), startFakeEdge()]);
  });
  afterAll(async () => {
    await browser?.close();
    await edge?.close();
  });

  describe.each(versions)("given an application with React %s", (version, alias) => {
    let site: Site;
    let page: Page;
    const errors: string[] = [];

    beforeAll(async () => {
      const { outputFiles } = await build({
        entryPoints: [fileURLToPath(new URL("support/page.ts", import.meta.url))],
        ...{ bundle: true, write: false, format: "esm", conditions: ["halyard-source"], alias },
        define: { "process.env.NODE_ENV": '"development"' },
      });
      site = await startSite(outputFiles[0]?.text ?? "");
    });
    beforeEach(async () => {
      edge.setFlags({ checkout: true });
      edge.requests.length = 0;
      errors.length = 0;
      page = await browser.context.newPage();
      page.on("console", (message) => {
        if (message.type() === "error") errors.push(message.text());
      });
      page.on("pageerror", (error) => errors.push(String(error)));
      await page.goto(site.url);
    });
    afterEach(async () => {
      await page.evaluate(() => localStorage.clear());
      await page.close();
    });
    afterAll(() => site?.close());

    const call = (name: string, argument?: unknown) =>
      page.evaluate(
        ([method, value]) => (globalThis as unknown as PageWindow).page[method as string]?.(value),
        [name, argument] as const,
      );
    const list = (name: "shown" | "recovered") =>
      page.evaluate((key) => (globalThis as unknown as Lists).page[key], name);
    const text = (id: string) => page.locator(`#${id}`).textContent({ timeout: 1_000 });
    const shows = (id: string, expected: string) =>
      eventually(() => text(id), { until: (found) => found === expected });
    const options = (more: object = {}) => ({
      ...{ baseUrl: edge.url, clientKey: `hc_abcdefghijklmnop_${"s".repeat(43)}` },
      ...more,
    });

    it("runs with that version", async () => {
      expect(await call("version")).toMatch(new RegExp(`^${version}\\.`));
    });

    it("renders again only if the used flag changes", async () => {
      await call("renderTestClient");
      await shows("flag", "old");
      const before = await call("renders");
      await call("setOther", true);
      await call("setFlag", true);
      await shows("flag", "new");
      // Strict mode renders twice.
      expect(await call("renders")).toBe((before as number) + 2);
      expect(errors).toEqual([]);
    });

    it("shows values of each type, and renders again only if the used flag changes", async () => {
      await call("renderValues");
      await shows("color", "blue");
      await shows("limits", "5");
      const before = [await call("colorRenders"), await call("limitsRenders")] as number[];
      await call("setOther", true);
      await call("setColor", "red");
      await shows("color", "red");
      const after = [await call("colorRenders"), await call("limitsRenders")] as number[];
      // Strict mode renders twice.
      expect(after).toEqual([(before[0] ?? 0) + 2, before[1]]);
      expect(errors).toEqual([]);
    });

    it("follows the values of the edge, and shows the fallback for a value of another type", async () => {
      edge.setFlags({ color: { value: "blue", variation: "cold" }, limits: true });
      await call("renderEdgeValues", options());
      await shows("color", "blue");
      expect(await text("limits")).toBe("0");
      edge.setFlags({ color: { value: null, variation: null }, limits: true });
      await shows("color", "grey");
      expect(errors).toEqual([]);
    });

    it("suspends until the values arrive, and then follows them", async () => {
      await call("render", options());
      await shows("suspending", "new");
      expect((await list("shown")).every((shown) => !shown.includes("old"))).toBe(true);
      edge.setFlags({ checkout: false });
      await shows("suspending", "old");
      await shows("flags", '{"checkout":false}');
      expect(errors).toEqual([]);
    });

    it("waits for current values although others are stored, unless it shows stored ones", async () => {
      await call("render", options());
      await shows("suspending", "new");
      await call("unmount");
      const before = (await list("shown")).length;
      edge.setFlags({ checkout: false });
      await call("render", options());
      await shows("suspending", "old");
      expect((await list("shown")).slice(before).join()).not.toContain("new");
      await call("unmount");
      const afterwards = (await list("shown")).length;
      edge.setFlags({ checkout: true });
      await call("renderStored", options());
      await shows("stored", "newtrue");
      expect((await list("shown")).slice(afterwards).find(Boolean)).toBe("oldfalse");
    });

    it("is ready when the values are current", async () => {
      await call("renderStored", options());
      await shows("stored", "newtrue");
    });

    it("has one stream in strict mode, and none after it was unmounted", async () => {
      await call("render", options());
      await shows("suspending", "new");
      await eventually(() => edge.streams().length === 1);
      await call("unmount");
      await eventually(() => edge.streams().length === 0);
    });

    it("switches the user when the context changes", async () => {
      edge.setFlags(({ id }) => ({ checkout: id === "bob" }));
      await call("render", options({ context: { id: "ada" } }));
      await shows("suspending", "old");
      await call("rerender", options({ context: { id: "bob" } }));
      await shows("suspending", "new");
    });

    it("hydrates bootstrapped values without a mismatch, and then follows the edge", async () => {
      const blue = { value: "blue", variation: "cold" };
      edge.setFlags({ checkout: false, color: { value: "red", variation: "warm" } });
      await call("hydrate", options({ bootstrap: { checkout: true, color: blue } }));
      await shows("flag", "old");
      await shows("suspending", "old");
      await shows("color", "red");
      expect((await list("shown"))[0]).toBe('new{"checkout":true}newblue');
      expect(await list("recovered")).toEqual([]);
      expect(errors).toEqual([]);
    });

    it("hydrates without values: fallbacks first, never the boundary's fallback", async () => {
      await call("hydrate", options());
      await shows("suspending", "new");
      expect((await list("shown"))[0]).toBe("old{}oldgrey");
      expect(await list("recovered")).toEqual([]);
      expect(errors).toEqual([]);
    });
  });
});

type PageWindow = { page: Record<string, ((argument: unknown) => unknown) | undefined> };
type Lists = { page: Record<"shown" | "recovered", string[]> };
