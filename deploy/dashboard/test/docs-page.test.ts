import { randomUUID } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { exampleIds } from "@halyard/contracts";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { givenPages } from "./given-pages.ts";

/** Tests of the page that shows the OpenAPI document. */
const generated = new URL("../../../docs/openapi.json", import.meta.url);

describe("given the documentation of the API", () => {
  const directory = mkdtempSync(join(tmpdir(), "halyard-docs-"));
  const exampleIdsFile = join(directory, "example-ids.json");
  let pages: Awaited<ReturnType<typeof givenPages>>;
  beforeAll(async () => {
    pages = await givenPages({ exampleIdsFile });
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

  it("shows the ids of its file as examples as soon as the file exists", async () => {
    const served = async () => (await fetch(`${pages.url}/openapi.json`)).text();
    const placeholders = await served();
    expect(placeholders).toBe(readFileSync(generated, "utf8"));
    const names = ["organizationId", "userId", "projectId", "environmentId"] as const;
    const ids = Object.fromEntries(names.map((name) => [name, randomUUID()]));
    writeFileSync(exampleIdsFile, JSON.stringify(ids));
    const known = await served();
    for (const name of names) {
      expect(known).toContain(`"example": "${ids[name]}"`);
      expect(known).not.toContain(exampleIds[name]);
    }
    expect(known).toContain(`"user_id": "${ids.userId}"`);
    expect(known).toContain(exampleIds.confirm);
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
