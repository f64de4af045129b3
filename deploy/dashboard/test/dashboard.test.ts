import { createHash } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { get as httpGet, type IncomingMessage } from "node:http";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { buffer, text } from "node:stream/consumers";
import { brotliCompressSync, brotliDecompressSync, gunzipSync, gzipSync } from "node:zlib";
import { createLogger } from "@halyard/service";
import { afterAll, describe, expect, it } from "@jest/globals";
import { givenPages } from "./given-pages.ts";

/** Tests of the files of the dashboard, with a folder such as Vite writes. */
const root = mkdtempSync(join(tmpdir(), "halyard-dashboard-"));
const folder = join(root, "dist");
const page = `<!doctype html><div id="root"></div>${" ".repeat(1_000)}`;
const script = `export const value = ${JSON.stringify("a".repeat(1_000))};`;
const icon = "<svg/>";
const files = { "index.html": page, "assets/index-B9R5L73L.js": script, "favicon.svg": icon };
mkdirSync(join(folder, "assets"), { recursive: true });
for (const [name, content] of Object.entries(files)) {
  writeFileSync(join(folder, name), content);
  if (content === icon) continue;
  writeFileSync(join(folder, `${name}.br`), brotliCompressSync(content));
  writeFileSync(join(folder, `${name}.gz`), gzipSync(content));
}
writeFileSync(join(root, "secret.js"), "beside the folder");
afterAll(() => rmSync(root, { recursive: true }));

/** The request headers of a browser that opens a page. */
const browser = { accept: "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8" };

const started: { stop: () => Promise<void> }[] = [];
afterAll(() => Promise.all(started.map(({ stop }) => stop())));

async function pagesWith(options: Parameters<typeof givenPages>[0]) {
  const pages = await givenPages(options);
  started.push(pages);
  return pages;
}

const pages = await pagesWith({ dashboardDir: folder });

describe("given a built dashboard", () => {
  const get = (path: string, headers: Record<string, string> = browser, method = "GET") =>
    fetch(pages.url + path, { method, headers: { "accept-encoding": "identity", ...headers } });

  /** Sends a path unchanged. `fetch` would resolve its dots. */
  async function getUnchanged(path: string): Promise<string> {
    const socket = connect(pages.port, "127.0.0.1");
    socket.end(`GET ${path} HTTP/1.1\r\nHost: a\r\nAccept: text/html\r\nConnection: close\r\n\r\n`);
    return text(socket);
  }

  it.each(["/", "/flags", "/flags/new-checkout", "/webhooks/0199?tab=deliveries", "/v1.2/a%20b"])(
    "returns the page to a browser at %s",
    async (path) => {
      const answered = await get(path);
      expect(answered.status).toBe(200);
      expect(answered.headers.get("content-type")).toBe("text/html; charset=utf-8");
      expect(await answered.text()).toBe(page);
    },
  );

  it.each(["/", "/flags", "/index.html", "/nothing.js"])(
    "returns an error as JSON to an API client at %s",
    async (path) => {
      for (const headers of [{}, { accept: "application/json" }] as Record<string, string>[]) {
        const answered = await get(path, headers);
        expect(answered.status).toBe(404);
        expect(answered.headers.get("vary")).toContain("Accept");
        expect(await answered.json()).toMatchObject({ error: { code: "NOT_FOUND_001" } });
      }
    },
  );

  it.each([
    "/api",
    "/api/v2/flags",
    "/ofrep",
    "/docs/nothing",
    "/metrics",
    "/auth/link/verify",
    "/assets/",
    "/assets/index-00000000.js",
    "/assets/../favicon.svg/",
  ])("returns an error to a browser too at %s", async (path) => {
    const answered = await getUnchanged(path);
    expect(answered).toMatch(/^HTTP\/1\.1 404 /);
    expect(answered).toContain("NOT_FOUND_001");
  });

  it("leaves the documentation and its resources where they were", async () => {
    expect(await (await get("/docs")).text()).toContain("swagger-ui");
    expect((await get("/openapi.json")).headers.get("content-type")).toContain("json");
  });

  it.each(["POST", "DELETE", "OPTIONS"])("returns 404 for %s", async (method) => {
    expect((await get("/flags", browser, method)).status).toBe(404);
  });

  it("answers HEAD with the headers of GET", async () => {
    const head = await get("/flags", browser, "HEAD");
    expect(head.headers.get("content-length")).toBe(String(page.length));
    expect(await head.text()).toBe("");
  });

  it("protects the page with strict headers, and sends it to browsers each time", async () => {
    const { headers } = await get("/flags");
    const policy = headers.get("content-security-policy") ?? "";
    expect(policy).toContain("default-src 'none'; script-src 'self'; style-src 'self' 'sha256-");
    expect(policy).toContain("connect-src 'self'");
    expect(policy).toContain("frame-ancestors 'none'");
    expect(policy).not.toMatch(/unsafe|\*|https?:/);
    expect(Object.fromEntries(headers)).toMatchObject({
      "cache-control": "no-cache",
      "cross-origin-opener-policy": "same-origin",
      "permissions-policy": expect.stringContaining("camera=()"),
      "referrer-policy": "no-referrer",
      vary: "Accept, accept-encoding",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
    });
    expect(headers.has("etag") || headers.has("last-modified")).toBe(false);
  });

  it("lets browsers keep assets forever, and revalidate other files", async () => {
    const asset = await get("/assets/index-B9R5L73L.js", { accept: "*/*" });
    expect(await asset.text()).toBe(script);
    expect(Object.fromEntries(asset.headers)).toMatchObject({
      "cache-control": "public, max-age=31536000, immutable",
      "content-type": "application/javascript; charset=utf-8",
      vary: "accept-encoding",
      "x-content-type-options": "nosniff",
    });
    const image = await get("/favicon.svg", { accept: "image/*" });
    expect(image.headers.get("content-type")).toBe("image/svg+xml");
    expect(image.headers.get("cache-control")).toBe("no-cache");
    expect(await image.text()).toBe(icon);
    const tag = { "if-none-match": image.headers.get("etag") ?? "" };
    expect((await readRaw("/favicon.svg", "identity", tag)).status).toBe(304);
  });

  it.each([
    ["br, gzip", "br", brotliDecompressSync],
    ["gzip, deflate, br;q=0", "gzip", gunzipSync],
    ["GZIP;q=0.5", "gzip", gunzipSync],
    ["deflate, gzip;q=0.0", undefined, (body: Buffer) => body],
    ["br;q=0, *", "gzip", gunzipSync],
  ] as const)("compresses for a client that accepts %s", async (accepted, encoding, decode) => {
    for (const [path, content] of [
      ["/flags", page],
      ["/assets/index-B9R5L73L.js", script],
    ] as const) {
      const { headers, body } = await readRaw(path, accepted);
      expect(headers["content-encoding"]).toBe(encoding);
      expect(decode(body).toString()).toBe(content);
    }
  });

  it("gives each encoding its own ETag, and sends a file without copies as it is", async () => {
    const asset = "/assets/index-B9R5L73L.js";
    const [br, gzip] = [await readRaw(asset, "br"), await readRaw(asset, "gzip")];
    expect(br.headers.etag).not.toBe(gzip.headers.etag);
    expect((await readRaw("/favicon.svg", "br")).headers["content-encoding"]).toBeUndefined();
  });

  /** Reads a response without the decoding and the cache headers of `fetch`. */
  async function readRaw(path: string, accepted: string, others: Record<string, string> = {}) {
    const headers = { ...browser, "accept-encoding": accepted, ...others };
    const request = httpGet(pages.url + path, { headers });
    const [incoming] = (await once(request, "response")) as [IncomingMessage];
    const { statusCode: status, headers: received } = incoming;
    return { status, headers: received, body: await buffer(incoming) };
  }

  it.each([
    "/assets/../../secret.js",
    "/../secret.js",
    "/..%2fsecret.js",
    "/assets/%2e%2e/%2e%2e/secret.js",
    "/assets/..\\..\\secret.js",
    "//secret.js",
    `/${encodeURIComponent(join(root, "secret.js"))}`,
  ])("serves no file outside of the folder for %s", async (path) => {
    expect(await getUnchanged(path)).not.toContain("beside the folder");
  });
});

describe("given no built dashboard", () => {
  it("starts, logs it once, and redirects browsers from / to the documentation", async () => {
    const lines: string[] = [];
    const logger = createLogger({
      service: "dashboard",
      level: "info",
      destination: { write: (line: string) => lines.push(line) },
    });
    const pages = await pagesWith({ dashboardDir: join(root, "missing"), logger });
    const answered = await fetch(pages.url, { headers: browser, redirect: "manual" });
    expect([answered.status, answered.headers.get("location")]).toEqual([302, "/docs"]);
    expect(answered.headers.get("vary")).toBe("Accept");
    for (const [path, headers] of [
      ["/", {}],
      ["/flags", browser],
    ] as const)
      expect((await fetch(pages.url + path, { headers })).status).toBe(404);
    expect(lines.filter((line) => line.includes("no dashboard"))).toHaveLength(1);
  });
});

describe("given the styles that React Aria adds to the page", () => {
  const library = dirname(createRequire(import.meta.url).resolve("react-aria/package.json"));

  it.each(["interactions/usePress.mjs", "overlays/usePreventScroll.mjs"])(
    "allows exactly the style of %s",
    async (module) => {
      const source = readFileSync(join(library, "dist/private", module), "utf8");
      const attribute = /PRESSABLE_ATTRIBUTE = '([\w-]+)'/.exec(source)?.[1] ?? "";
      const style = /style\.textContent = `([^`]+)`\.trim\(\)/.exec(source)?.[1] ?? "";
      const content = style.replaceAll(/\$\{[^}]*PRESSABLE_ATTRIBUTE\}/g, attribute).trim();
      const hash = createHash("sha256").update(content).digest("base64");
      const pages = await pagesWith({ dashboardDir: folder });
      const { headers } = await fetch(pages.url, { headers: browser });
      expect(headers.get("content-security-policy")).toContain(`'sha256-${hash}'`);
    },
  );
});
