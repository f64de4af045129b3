import { once } from "node:events";
import { createServer, type Server } from "node:http";
import { eventually, type ServiceProcess } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { System } from "../../src/system/system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";
import { createFlags } from "../../src/traffic/changes.ts";

/**
 * A page of another origin in a real browser, because only a browser shows what it allows a page to do. The functions
 * passed to `evaluate` run in the page.
 */
export function describeBrowser(given: () => ClientSystem): void {
  describeInChromium("given a page of another origin", () => describePageOfAnotherOrigin(given));
}

function describePageOfAnotherOrigin(given: () => ClientSystem): void {
  let system: System;
  let gateway: ServiceProcess;
  let site: Server;
  let browser: Browser;
  let page: Page;
  let tenant: Tenant;
  let flagId: string;

  beforeAll(async () => {
    ({ system, gateway } = given());
    browser = await startChromium();
    tenant = await createTenant(gateway.url, { name: "Pages" });
    const [flag] = await createFlags(gateway.url, tenant.serverKey, ["checkout"]);
    flagId = flag?.id as string;
    site = createServer((_request, response) => {
      response.writeHead(200, { "content-type": "text/html" });
      response.end("<!doctype html><title>A page</title>");
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

  const flagsUrl = (base: string) => `${base}/api/v1/sdk/flags`;
  const bases = () => [gateway.url, system.edges[0]?.url as string];

  const fetchInPage = (
    url: string,
    init: { method?: string; headers?: Record<string, string>; body?: string },
  ) =>
    page.evaluate(
      async ([target, options]) => {
        const response = await fetch(target, options);
        return {
          status: response.status,
          body: await response.text(),
          etag: response.headers.get("etag"),
          requestId: response.headers.get("x-request-id"),
          retryAfter: response.headers.get("retry-after"),
          date: response.headers.get("date"),
        };
      },
      [url, init] as const,
    );

  it("reads the flags, their ETag and the request id", async () => {
    for (const base of bases()) {
      const answer = await fetchInPage(flagsUrl(base), {
        headers: { authorization: `Bearer ${tenant.clientKey}` },
      });
      expect(answer).toMatchObject({ status: 200, body: '{"flags":{"checkout":false}}' });
      expect(answer.etag).toMatch(/^".+"$/);
      expect(answer.requestId).toMatch(/./);
      // A header that is not exposed is hidden, so the other headers are exposed on purpose.
      expect(answer.date).toBeNull();
    }
  });

  it("receives 304 if it sends the current ETag", async () => {
    for (const base of bases()) {
      const headers = { authorization: `Bearer ${tenant.clientKey}` };
      const { etag } = await fetchInPage(flagsUrl(base), { headers });
      const again = await fetchInPage(flagsUrl(base), {
        headers: { ...headers, "if-none-match": etag as string },
      });
      expect(again).toMatchObject({ status: 304, body: "", etag });
    }
  });

  it("sends a user's context in every supported way", async () => {
    for (const base of bases()) {
      const authorization = `Bearer ${tenant.clientKey}`;
      const context = JSON.stringify({ id: "ada" });
      const byHeader = await fetchInPage(flagsUrl(base), {
        headers: {
          authorization,
          "x-user-context": context,
          "x-user-id": "ada",
          "x-user-email": "ada@example.com",
          "x-user-attributes": "plan=pro",
        },
      });
      expect(byHeader.status).toBe(200);
      const byBody = await fetchInPage(flagsUrl(base), {
        method: "POST",
        headers: { authorization, "content-type": "application/json" },
        body: context,
      });
      expect(byBody.status).toBe(200);
    }
  });

  it("reads the error of a rejected request", async () => {
    for (const base of bases()) {
      const rejected = await fetchInPage(flagsUrl(base), {
        headers: { authorization: "Bearer nonsense" },
      });
      expect(rejected.status).toBe(401);
      expect(JSON.parse(rejected.body).error.code).toBe("AUTH_001");
      expect(rejected.requestId).toMatch(/./);
      const unknown = await fetchInPage(`${base}/api/v1/sdk/evaluate?key=nothing`, {
        headers: { authorization: `Bearer ${tenant.clientKey}` },
      });
      expect(JSON.parse(unknown.body).error.code).toBe("NOT_FOUND_001");
    }
  });

  it("reads the stream, and a change while it is open", async () => {
    for (const [round, base] of bases().entries()) {
      await page.evaluate(
        ([target, key]) => {
          const shared = globalThis as unknown as { received: string };
          shared.received = "";
          void fetch(target, {
            headers: { authorization: `Bearer ${key}`, accept: "text/event-stream" },
          }).then(async (response) => {
            const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
            for (;;) {
              const part = await reader?.read();
              if (part === undefined || part.done) return;
              shared.received += part.value;
            }
          });
        },
        [`${base}/api/v1/sdk/stream`, tenant.clientKey] as const,
      );
      const received = () =>
        page.evaluate(() => (globalThis as unknown as { received: string }).received);
      const shows = async (checkout: boolean) =>
        (await received())
          .split("\n")
          .filter((line) => line.startsWith("data: "))
          .some((line) => JSON.parse(line.slice("data: ".length)).flags?.checkout === checkout);
      const enabled = round % 2 === 0;
      await eventually(() => shows(!enabled));
      await must(`${gateway.url}/api/v1/flags/${flagId}`, {
        method: "PATCH",
        key: tenant.serverKey,
        body: { enabled },
      });
      await eventually(() => shows(enabled));
    }
  });

  it("cannot read management routes", async () => {
    const outcome = await page.evaluate(
      async ([target, key]) =>
        fetch(target, { headers: { authorization: `Bearer ${key}` } }).then(
          (response) => `read with ${response.status}`,
          (error: Error) => error.name,
        ),
      [`${gateway.url}/api/v1/flags`, tenant.serverKey] as const,
    );
    expect(outcome).toBe("TypeError");
  });
}
