import { operatorNames } from "@halyard/contracts";
import { operators } from "@halyard/evaluation";
import { afterAll, describe, expect, it } from "@jest/globals";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";

const management = await openManagement();
afterAll(() => management.close());
const project = await seedProject(management);

const ask = (key: string | undefined, headers: Record<string, string> = {}) =>
  management.call("/api/v1/operators", { headers, ...(key === undefined ? {} : { key }) });

describe("given the list of operators", () => {
  it("contains all operators that rules can use, with their documentation", async () => {
    const { status, body } = await ask(project.serverKey);
    expect(status).toBe(200);
    expect(body).toEqual({ operators });
    const names = body.operators.map(({ name }: { name: string }) => name);
    expect(names).toEqual(operatorNames);
    for (const operator of body.operators)
      expect(Object.keys(operator).sort()).toEqual(["category", "description", "example", "name"]);
  });

  it("is returned to every kind of key with the same ETag and a lifetime of one day", async () => {
    const keys = [project.serverKey, project.clientKey, project.environmentOnlyKey];
    const answers = await Promise.all(keys.map((key) => ask(key)));
    const [etag] = answers.map(({ headers }) => headers.get("etag"));
    expect(etag).toMatch(/^"[\w-]+"$/);
    for (const { status, headers } of answers) {
      expect(status).toBe(200);
      expect(headers.get("content-type")).toBe("application/json; charset=utf-8");
      expect(headers.get("cache-control")).toBe("private, max-age=86400");
      expect(headers.get("vary")).toContain("Authorization");
      expect(headers.get("etag")).toBe(etag);
    }
  });

  it("is not returned to other callers", async () => {
    const cases = [
      [undefined, 401, "AUTH_001"],
      ["nonsense", 401, "AUTH_001"],
      [`${project.clientKey.slice(0, -4)}AAAA`, 401, "AUTH_001"],
      [operatorToken, 403, "AUTH_002"],
    ] as const;
    for (const [key, status, code] of cases) {
      const rejected = await ask(key);
      expect([rejected.status, rejected.body.error.code]).toEqual([status, code]);
      expect(rejected.headers.get("cache-control")).toBe("private, no-cache");
    }
  });

  it("returns 304 to a client that has the current version", async () => {
    const etag = String((await ask(project.clientKey)).headers.get("etag"));
    for (const sent of [etag, `W/${etag}`, `"another", ${etag}`, `"another",W/${etag}`, "*"]) {
      const { status, body, headers } = await ask(project.clientKey, { "if-none-match": sent });
      expect([sent, status, body]).toEqual([sent, 304, undefined]);
      expect(headers.get("etag")).toBe(etag);
      expect(headers.get("cache-control")).toBe("private, max-age=86400");
      expect(headers.get("vary")).toContain("Authorization");
    }
    for (const sent of ['"another"', etag.slice(1, -1), "", '"*"']) {
      const { status } = await ask(project.clientKey, { "if-none-match": sent });
      expect([sent, status]).toEqual([sent, 200]);
    }
    const withoutKey = await ask(undefined, { "if-none-match": etag });
    expect(withoutKey.status).toBe(401);
  });
});

describe("given an unavailable database", () => {
  it("returns the list of operators", async () => {
    await management.sql.end();
    const flags = await management.call("/api/v1/flags", { key: project.serverKey });
    expect(flags.status).toBe(503);
    expect((await ask(project.clientKey)).status).toBe(200);
  });
});
