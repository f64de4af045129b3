import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exampleIds } from "@halyard/contracts";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { givenPages } from "./given-pages.ts";

const demoIds = {
  ...{ organizationId: randomUUID(), projectId: randomUUID(), environmentId: randomUUID() },
  ...{ userId: randomUUID(), flagId: randomUUID(), webhookId: randomUUID() },
  ...{ deliveryId: randomUUID(), keyId: "2345abcd2345abcd" },
};

/** Answers as the API of a demo with a flag and a webhook. */
async function startDemoApi() {
  const { organizationId, projectId, environmentId, userId, keyId } = demoIds;
  const webhooks = `/api/v1/projects/${projectId}/webhooks`;
  const answers: Record<string, unknown> = {
    "/api/v1/me": {
      ...{ key: { id: keyId, environment_id: environmentId }, user: { id: userId } },
      ...{ organization: { id: organizationId }, project: { id: projectId } },
    },
    "/api/v1/flags?limit=1": { flags: [{ id: demoIds.flagId }] },
    [webhooks]: { webhooks: [{ id: demoIds.webhookId }] },
    [`${webhooks}/${demoIds.webhookId}/deliveries?limit=1`]: {
      deliveries: [{ id: demoIds.deliveryId }],
    },
  };
  const server = createServer(({ url = "", headers }, response) => {
    const isKnown = headers.authorization === "Bearer hs_a_key" && url in answers;
    response.writeHead(isKnown ? 200 : 404).end(JSON.stringify(answers[url] ?? {}));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return { url, stop: () => new Promise((resolve) => server.close(resolve)) };
}

/** Tests of the page that shows the OpenAPI document. */
const generated = new URL("../../../docs/openapi.json", import.meta.url);

describe("given the documentation of the API", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-docs-"));
  const demoFile = join(directory, "demo.json");
  let pages: Awaited<ReturnType<typeof givenPages>>;
  beforeAll(async () => {
    pages = await givenPages({ demoFile });
  });
  afterAll(async () => {
    await pages.stop();
    rmSync(directory, { recursive: true });
  });

  it("serves the OpenAPI document", async () => {
    const answered = await fetch(`${pages.url}/openapi.json`);
    expect(answered.headers.get("content-type")).toContain("application/json");
    expect(await answered.json()).toMatchObject({
      openapi: "3.1.0",
      info: { title: "Halyard API" },
    });
  });

  it("shows the ids of the demo as examples as soon as its file exists, except where a request ends something", async () => {
    const served = async () => (await fetch(`${pages.url}/openapi.json`)).text();
    const placeholders = JSON.parse(readFileSync(generated, "utf8"));
    expect(JSON.parse(await served())).toEqual(placeholders);
    const api = await startDemoApi();
    writeFileSync(demoFile, JSON.stringify({ base_url: api.url, server_key: "hs_a_key" }));
    const text = await served();
    const { paths } = JSON.parse(text);
    const exampleOf = (path: string, method: string) =>
      paths[path][method].parameters.map(({ example }: { example?: string }) => example);
    const flagPath = "/api/v1/flags/{id}";
    expect(exampleOf(flagPath, "patch")).toContain(demoIds.flagId);
    expect(exampleOf(flagPath, "delete")).toContain(exampleIds.flagId);
    const keyPath = "/api/v1/projects/{projectId}/environments/{environmentId}/keys/{keyId}";
    expect(exampleOf(keyPath, "get")).toContain(demoIds.keyId);
    expect(exampleOf(`${keyPath}/rotate`, "post")).toContain(exampleIds.keyId);
    expect(text).toContain(`"user_id":"${demoIds.userId}"`);
    for (const name of ["organizationId", "projectId", "environmentId", "userId"] as const)
      expect(text).not.toContain(exampleIds[name]);
    for (const name of ["webhookId", "deliveryId"] as const) expect(text).toContain(demoIds[name]);
    expect(text).toContain(exampleIds.confirm);
    await api.stop();
  });

  it.each([
    ["its key has been revoked", "hs_revoked", true],
    ["the API is unavailable", "hs_a_key", false],
  ])("shows placeholders in the examples of a demo if %s", async (_, key, isRunning) => {
    const api = await startDemoApi();
    if (!isRunning) await api.stop();
    writeFileSync(demoFile, JSON.stringify({ base_url: api.url, server_key: key }));
    const answered = await fetch(`${pages.url}/openapi.json`);
    expect(answered.status).toBe(200);
    expect(await answered.json()).toEqual(JSON.parse(readFileSync(generated, "utf8")));
    if (isRunning) await api.stop();
  });

  it("serves a page with all its resources, which may not load anything from other origins", async () => {
    for (const path of ["/docs", "/docs/"]) {
      const answered = await fetch(pages.url + path);
      const html = await answered.text();
      expect(answered.headers.get("content-type")).toContain("text/html");
      expect(Object.fromEntries(answered.headers)).toMatchObject({
        "content-security-policy": expect.stringMatching(
          /^default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline';.* frame-ancestors 'none'$/,
        ),
        "cross-origin-opener-policy": "same-origin",
        "permissions-policy": expect.stringContaining("camera=()"),
        "x-frame-options": "DENY",
      });
      expect(html).not.toMatch(/https?:/);
      const linked = [...html.matchAll(/(?:src|href)="([^"]+)"/g)].map(([, url]) => url as string);
      expect(linked).toHaveLength(4);
      for (const url of linked) expect((await fetch(pages.url + url)).status).toBe(200);
    }
    const head = await fetch(`${pages.url}/docs`, { method: "HEAD" });
    expect(head.status).toBe(200);
    expect(Number(head.headers.get("content-length"))).toBeGreaterThan(0);
    const script = await (await fetch(`${pages.url}/docs/start.js`)).text();
    expect(script).toContain('url: "/openapi.json"');
  });
});
