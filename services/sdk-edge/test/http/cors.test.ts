import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

let edge: EdgeServer;
beforeAll(async () => {
  edge = await startEdgeServer([apiKey().entry]);
});
afterAll(() => edge.stop());

const origin = "https://shop.example";

describe.each(["flags", "values", "evaluate", "stream"])(
  "given a preflight for /api/v1/sdk/%s",
  (name) => {
    const preflight = (requestHeaders: string) =>
      fetch(`${edge.url}/api/v1/sdk/${name}`, {
        method: "OPTIONS",
        headers: {
          origin,
          "access-control-request-method": "GET",
          "access-control-request-headers": requestHeaders,
        },
      });

    it("allows the headers of an SDK for any origin, without a key", async () => {
      const { status, headers } = await preflight("authorization,if-none-match");
      expect(status).toBe(204);
      expect(headers.get("access-control-allow-origin")).toBe("*");
      expect(headers.get("access-control-allow-methods")).toBe("GET, POST");
      expect(headers.get("x-content-type-options")).toBe("nosniff");
      expect(Number(headers.get("access-control-max-age"))).toBeGreaterThanOrEqual(7_200);
      const allowed = headers.get("access-control-allow-headers")?.split(", ");
      for (const header of ["Authorization", "X-API-Key", "Content-Type", "If-None-Match"])
        expect(allowed).toContain(header);
      for (const header of [
        ...["Last-Event-ID", "X-User-Context", "X-User-ID", "X-User-Attributes"],
        ...["traceparent", "tracestate", "baggage"],
      ])
        expect(allowed).toContain(header);
    });

    it("allows further headers about the user, and no others", async () => {
      const { headers } = await preflight("x-user-tenant, x-evil, x-user-\u00e9, cookie");
      const allowed = headers.get("access-control-allow-headers")?.toLowerCase();
      expect(allowed).toContain("x-user-tenant");
      expect(allowed).not.toContain("evil");
      expect(allowed).not.toContain("cookie");
    });
  },
);

describe("given an error", () => {
  it.each([
    ["no key", "/api/v1/sdk/flags", {}, 401],
    ["an unknown path", "/api/v1/sdk/nothing", {}, 404],
    ["an unsupported method", "/api/v1/sdk/flags", { method: "DELETE" }, 404],
    ["OPTIONS without a preflight", "/api/v1/sdk/flags", { method: "OPTIONS" }, 404],
  ])("is readable for pages of any origin: %s", async (_name, path, options, status) => {
    const answered = await fetch(edge.url + path, { ...options, headers: { origin } });
    expect(answered.status).toBe(status);
    expect(answered.headers.get("access-control-allow-origin")).toBe("*");
    expect(answered.headers.get("x-content-type-options")).toBe("nosniff");
    expect(answered.headers.get("access-control-expose-headers")).toBe(
      "ETag, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
    );
  });

  it("sends no CORS headers outside the SDK's endpoints", async () => {
    const answered = await fetch(`${edge.url}/api/v1/flags`, { headers: { origin } });
    expect(answered.status).toBe(404);
    expect(answered.headers.has("access-control-allow-origin")).toBe(false);
  });
});
