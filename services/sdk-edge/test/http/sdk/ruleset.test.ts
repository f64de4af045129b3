import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { text } from "node:stream/consumers";
import { gunzipSync } from "node:zlib";
import { Ruleset } from "@halyard/contracts";
import { call, eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  apiKey,
  deletedFlag,
  flagEntry,
  id,
  organizationWith,
  revokedKey,
  splitOf,
  typedFlag,
} from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";
import { ask, bytesOf } from "./asking.ts";

const server = apiKey({ key_kind: "server" });
const client = apiKey();
const rules = [
  {
    name: "Köln „staff“",
    conditions: [{ attribute: "email", operator: "ends_with" as const, value: "@corp.io" }],
    rollout_percentage: 20,
  },
];
/** Enough flags for a body that is compressed. */
const flagCount = 30;
const flag = (number: number, fields: Parameters<typeof flagEntry>[0] = {}) =>
  flagEntry({ flag_id: id("flag", number), key: `flag-${number}`, ...fields });
let edge: EdgeServer;

beforeEach(async () => {
  const flags = Array.from({ length: flagCount }, (_, number) => flag(number));
  const changed = flag(0, { version: 3, enabled: true, targeting_rules: rules });
  edge = await startEdgeServer(
    [...organizationWith(), server.entry, client.entry, ...flags, changed],
    { countsUsage: true },
  );
});
afterEach(() => edge.stop());

const get = (headers: Record<string, string> = {}, method = "GET") =>
  ask(edge, server.text, { headers, method });
const counted = () => edge.counting?.take()?.environments[0]?.requests.ruleset ?? 0;

describe("given a server key", () => {
  it("returns the rules of all flags", async () => {
    const { status, body } = await get();
    expect(status).toBe(200);
    const { project_id, environment_id, flags } = Ruleset.parse(body);
    expect([project_id, environment_id]).toEqual([id("project"), id("env")]);
    expect(Object.keys(flags)).toHaveLength(flagCount);
    expect(flags["flag-0"]).toEqual({
      ...{ enabled: true, rollout_percentage: 100, version: 3 },
      targeting_rules: rules,
    });
  });

  it("names what an evaluator must know for a flag, and only for such flags", async () => {
    const more = { bucket_by: "company", bucket_seed: "spring", rollout_percentage: 12.5 };
    await edge.feed(flag(1, { version: 4, ...more }));
    const { flags } = Ruleset.parse((await get()).body);
    expect(flags["flag-1"]).toMatchObject({ ...more, needs: ["buckets"] });
    expect(flags["flag-0"]).not.toHaveProperty("needs");
  });

  it("returns a typed flag with its state, the texts of its values, and what it needs", async () => {
    const { serve, ...state } = {
      ...{ bucket_by: "company", off_variation: null, version: 2 },
      serve: splitOf({ small: 50, large: 50 }),
    };
    const values = { small: '{"b":1.0,"1":1e-21}', large: '{"__proto__":"größe"}' };
    await edge.feed(
      typedFlag("object", values, { flag_id: id("flag", 1), key: "flag-1", serve, ...state }),
    );
    const { bytes } = await bytesOf(edge, server.text, "identity");
    expect(bytes.toString()).toContain(
      `"flag-1":{"value_type":"object","variations":[{"key":"small","value":${values.small}},{"key":"large","value":${values.large}}],`,
    );
    const { flags } = Ruleset.parse(JSON.parse(bytes.toString()));
    expect(flags["flag-1"]).toMatchObject({ ...state, serve, needs: ["buckets", "values"] });
  });

  it.each(["", "?format=1", "?format=3", "?format=2&format=2"])(
    "rejects a request with the query %j, which an SDK of another format sends",
    async (query) => {
      for (const path of ["/api/v1/sdk/ruleset", "/api/v1/sdk/ruleset/stream"]) {
        const { status, body } = await call(`${edge.url}${path}${query}`, { key: server.text });
        expect(status).toBe(400);
        expect(body.error.message).toContain("/format must be 2");
      }
    },
  );

  it("sends a strong ETag, and headers that keep caches from storing the rules", async () => {
    const { headers } = await get();
    expect(headers.get("etag")).toMatch(/^"2\.[0-9a-z]+-[\w-]{22}"$/);
    expect(headers.get("cache-control")).toBe("no-store");
    expect(headers.get("vary")).toBe("Authorization, Accept-Encoding");
    expect(headers.get("ratelimit")).toMatch(/^"monthly"/);
  });

  it("counts one request and no evaluation", async () => {
    await get();
    const [environment] = edge.counting?.take()?.environments ?? [];
    expect(environment?.requests.ruleset).toBe(1);
    expect(environment?.bulkAnswers).toBe(0);
  });

  it("returns the headers of GET for HEAD", async () => {
    const asked = await get({ "accept-encoding": "identity" });
    const { status, headers, body } = await get({ "accept-encoding": "identity" }, "HEAD");
    expect(status).toBe(200);
    expect(body).toBeUndefined();
    for (const name of ["etag", "content-length", "content-type", "vary"])
      expect(headers.get(name)).toBe(asked.headers.get(name));
  });

  it("returns an empty rule set for an environment without flags", async () => {
    const other = apiKey({ key_kind: "server", environment_id: id("env", 2) });
    await edge.feed(other.entry);
    const { body } = await ask(edge, other.text);
    expect(body).toEqual({
      ...{ format: 2, project_id: id("project"), environment_id: id("env", 2) },
      flags: {},
    });
  });
});

describe("given a client that has the rules", () => {
  it.each([
    ["the ETag", (etag: string) => etag],
    ["a list", (etag: string) => `"another", ${etag}`],
    ["a weak ETag", (etag: string) => `W/${etag}`],
    ["any ETag", () => "*"],
    ["the hash with another time", (etag: string) => etag.replace(/^"2\.[^-]+-/, '"2.k-')],
  ])("sends 304 without a body for %s, and counts it", async (_what, header) => {
    const etag = (await get()).headers.get("etag") ?? "";
    counted();
    const { status, headers, body } = await get({ "if-none-match": header(etag) });
    expect(status).toBe(304);
    expect(body).toBeUndefined();
    expect(headers.get("etag")).toBe(etag);
    expect(headers.get("vary")).toContain("Accept-Encoding");
    expect(counted()).toBe(1);
  });

  it("sends the new rules after a change and after a deletion", async () => {
    const before = await get();
    await edge.feed(flag(1, { version: 2, enabled: true }), deletedFlag(2, id("flag", 2)));
    const { status, headers, body } = await get({
      "if-none-match": before.headers.get("etag") ?? "",
    });
    expect(status).toBe(200);
    expect(headers.get("etag")).not.toBe(before.headers.get("etag"));
    const { "flag-2": deleted, ...others } = before.body.flags;
    expect(deleted).toBeDefined();
    expect(body.flags).toEqual({
      ...others,
      "flag-1": { ...others["flag-1"], enabled: true, version: 2 },
    });
  });
});

describe("given a typed flag that is published again with other variations", () => {
  it("sends the new values to a client that has the earlier ones", async () => {
    const typed = { flag_id: id("flag", 1), key: "flag-1" };
    await edge.feed(typedFlag("string", { it: '"old"' }, { ...typed, version: 2 }));
    const etag = (await get()).headers.get("etag") ?? "";
    await edge.feed(typedFlag("string", { it: '"new"' }, { ...typed, version: 3 }));
    const { status, body } = await get({ "if-none-match": etag });
    expect(status).toBe(200);
    expect(body.flags["flag-1"].variations).toEqual([{ key: "it", value: "new" }]);
  });
});

describe("given a client that accepts gzip", () => {
  it("sends the same rules with the same ETag in gzip", async () => {
    const plain = await bytesOf(edge, server.text, "identity");
    const answers = await Promise.all(
      Array.from({ length: 3 }, () => bytesOf(edge, server.text, "br, gzip")),
    );
    for (const { headers, bytes } of answers) {
      expect(headers["content-encoding"]).toBe("gzip");
      expect(headers["content-length"]).toBe(String(bytes.length));
      expect(headers.etag).toBe(plain.headers.etag);
      expect(bytes.length).toBeLessThan(plain.bytes.length / 2);
      expect(gunzipSync(bytes).equals(plain.bytes)).toBe(true);
    }
  });

  it("sends the rules of the current state after a change", async () => {
    await bytesOf(edge, server.text, "gzip");
    await edge.feed(flag(1, { version: 2, enabled: true }));
    const { bytes } = await bytesOf(edge, server.text, "gzip");
    expect(JSON.parse(gunzipSync(bytes).toString()).flags["flag-1"].enabled).toBe(true);
  });

  it("does not compress a small rule set", async () => {
    const other = apiKey({ key_kind: "server", environment_id: id("env", 2) });
    await edge.feed(other.entry);
    const { headers } = await bytesOf(edge, other.text, "gzip");
    expect(headers["content-encoding"]).toBeUndefined();
  });
});

describe("given a client that reads a large rule set slowly", () => {
  it("holds one part of the rules for it, and sends all when it reads", async () => {
    const partBytes = 1_000_000;
    const count = 16;
    const value = "x".repeat(partBytes);
    const large = Array.from({ length: count }, (_, number) =>
      flag(100 + number, {
        targeting_rules: [{ conditions: [{ attribute: "id", operator: "equals", value }] }],
      }),
    );
    await edge.feed(...large);
    const connected = once(edge.edge.app.server, "connection") as Promise<[Socket]>;
    const { hostname, port } = new URL(edge.url);
    const reader = connect(Number(port), hostname).pause();
    reader.write(
      `GET /api/v1/sdk/ruleset?format=2 HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer ${server.text}\r\nConnection: close\r\n\r\n`,
    );
    const [connection] = await connected;
    await eventually(() => connection.writableLength > 0);
    expect(connection.writableLength).toBeLessThan(2 * partBytes);
    const [, body = ""] = (await text(reader)).split("\r\n\r\n");
    expect(Object.keys(JSON.parse(body).flags)).toHaveLength(flagCount + count);
  });
});

describe("given another key", () => {
  it("rejects a client key with 403, and counts the request", async () => {
    const { status, body } = await ask(edge, client.text);
    expect(status).toBe(403);
    expect(body.error.code).toBe("AUTH_002");
    expect(counted()).toBe(1);
  });

  it("rejects a revoked key with 401", async () => {
    await edge.feed(revokedKey(server.keyId));
    expect((await get()).status).toBe(401);
  });

  it("answers other methods with 404", async () => {
    const { status } = await call(`${edge.url}/api/v1/sdk/ruleset?format=2`, {
      ...{ key: server.text, method: "POST", body: {} },
    });
    expect(status).toBe(404);
  });
});
