/// <reference lib="dom" />
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type Browser, chromium, type Page } from "playwright-core";
import { type System, startSystem } from "../src/system.ts";
import { createTenant, must, type Tenant } from "../src/tenancy.ts";

/**
 * A web page of another origin, in a real browser, asks the gateway for flags. Chromium is Debian's;
 * on a machine without it this one file has nothing to say, and says that, unless REQUIRE_CHROMIUM=1.
 */
const executablePath = "/usr/bin/chromium";
const mayBeAbsent = process.env.REQUIRE_CHROMIUM !== "1";
const isAbsent = mayBeAbsent && !existsSync(executablePath);
if (isAbsent)
  process.stderr.write(
    "\nThere is no Chromium at /usr/bin/chromium: CORS is NOT tried in a browser. Install it with: apt-get install chromium\n\n",
  );
const describeInBrowser = isAbsent ? describe.skip : describe;

const quiet = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

describeInBrowser("given a page of another origin", () => {
  let system: System;
  let gateway: string;
  let tenant: Tenant;
  let site: Server;
  let browser: Browser;
  let page: Page;

  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 1 });
    gateway = (await system.startGateway()).url;
    tenant = await createTenant(gateway, { name: "Browser" });
    await must(`${gateway}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      body: { key: "new-checkout", name: "New checkout", enabled: true },
    });
    site = createServer((_request, response) => {
      response.setHeader("content-type", "text/html").end("<!doctype html><title>A shop</title>");
    });
    await new Promise<void>((resolve) => site.listen(0, "127.0.0.1", resolve));
    browser = await chromium.launch({ executablePath, args: quiet });
    page = await browser.newPage();
    await page.goto(`http://127.0.0.1:${(site.address() as AddressInfo).port}/`);
  });
  afterAll(async () => {
    await browser?.close();
    site?.close();
    await system?.close();
  });

  /** What the page's own script gets to see of an answer. */
  function fetchInPage(path: string, init: { method?: string; headers: Record<string, string> }) {
    return page.evaluate(
      async ({ url, init }) => {
        const answer = await fetch(url, init);
        return {
          status: answer.status,
          etag: answer.headers.get("etag"),
          requestId: answer.headers.get("x-request-id"),
          body: await answer.text(),
        };
      },
      { url: gateway + path, init },
    );
  }

  const bearer = (key: string) => ({ authorization: `Bearer ${key}` });

  it("reads the flags, their tag and the request's id", async () => {
    const answer = await fetchInPage("/api/v1/sdk/flags", { headers: bearer(tenant.clientKey) });
    expect(answer.status).toBe(200);
    expect(JSON.parse(answer.body)).toEqual({ flags: { "new-checkout": true } });
    expect(answer.etag).toMatch(/^"[^"]+"$/);
    expect(answer.requestId).toMatch(/\S/);
  });

  it("asks conditionally, with headers that need a preflight", async () => {
    const headers = bearer(tenant.clientKey);
    const { etag } = await fetchInPage("/api/v1/sdk/flags", { headers });
    const again = await fetchInPage("/api/v1/sdk/flags", {
      headers: { ...headers, "if-none-match": etag ?? "", "x-user-id": "u1" },
    });
    expect(again).toMatchObject({ status: 304, body: "", etag });
  });

  it("reads why it was refused", async () => {
    const answer = await fetchInPage("/api/v1/sdk/flags", { headers: bearer("no key") });
    expect(answer.status).toBe(401);
    expect(JSON.parse(answer.body).error.code).toBe("AUTH_001");
  });

  it("reads the stream, and a change as it comes", async () => {
    const seen = page.evaluate(
      async ({ url, headers }) => {
        const answer = await fetch(url, { headers });
        const reader = (answer.body as ReadableStream<Uint8Array>).getReader();
        const decoder = new TextDecoder();
        let text = "";
        while (!text.includes('"new-checkout":false')) {
          const { value, done } = await reader.read();
          if (done) break;
          text += decoder.decode(value, { stream: true });
          if (text.includes("heartbeat")) document.title = "watching";
        }
        await reader.cancel();
        return text;
      },
      { url: `${gateway}/api/v1/sdk/stream`, headers: bearer(tenant.clientKey) },
    );
    await page.waitForFunction(() => document.title === "watching");
    const [flag] = (await must(`${gateway}/api/v1/flags`, { key: tenant.serverKey })).flags;
    await must(`${gateway}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      key: tenant.serverKey,
      body: { enabled: false },
    });
    expect(await seen).toContain('data: {"flags":{"new-checkout":false}}');
  });

  it("may not use the routes that manage flags", async () => {
    const headers = bearer(tenant.serverKey);
    await expect(fetchInPage("/api/v1/flags", { headers })).rejects.toThrow("Failed to fetch");
  });
});
