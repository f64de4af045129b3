import { bucketOf } from "@halyard/evaluation";
import { call, eventually } from "@halyard/testing";
import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { Edge } from "../../src/system/system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";
import { disturb } from "../../src/traffic/probe.ts";
import { headerBytes, type RawRequest } from "../../src/traffic/raw-request.ts";

/**
 * Sends hostile contexts to an edge in its own process. Each is rejected, or evaluated as documented. The process stays
 * alive, serves other requests at the usual speed, and does not grow.
 */
/** Maximum delay that a hostile request may cause. */
const quickMs = 250;
const maxGrowthBytes = 200 * 1024 * 1024;
const bodyLimitBytes = 64 * 1024;
const userHeadersLimitBytes = 16 * 1024;
const inheritedNames = ["__proto__", "toString"];
const inheritedFlags = inheritedNames.map((name) => `on-${name}`);

/** Patterns that stall backtracking engines. */
const hostilePatterns = [
  "(a+)+$",
  "(a|a)*b",
  "(.*)*x",
  "(a?){25}a{25}b",
  "^(([a-z])+.)+[A-Z]([a-z])+$",
  "(?i)(\\pL+\\s?)+\\d$",
  ".*.*.*.*=.*",
  "(x+x+)+y",
];

type Condition = { attribute: string; operator: string; value: unknown };

export function describeHostileContexts({ system }: ClientSystem): void {
  const [edge] = system.edges as [Edge];
  let tenant: Tenant;
  let residentBytes: number;

  beforeAll(async () => {
    tenant = await createTenant(managementUrl(), { name: "Hostile" });
    for (const attribute of inheritedNames)
      await makeFlag(`on-${attribute}`, [{ attribute, operator: "equals", value: "mine" }]);
    await makeFlag("half", [], { rollout_percentage: 50 });
    await makeFlag("ends-so", [{ attribute: "text", operator: "ends_with", value: "the end" }]);
    await makeFlag("has-last", [{ attribute: "list", operator: "in", value: ["last"] }]);
    await makeFlag("not-last", [{ attribute: "list", operator: "not_in", value: "last" }]);
    await makeFlag("plain", [{ attribute: "id", operator: "equals", value: "ordinary" }]);
    await eventually(async () => (await flagsFor({}))?.plain === false);
    // Code that is loaded for the first response of each kind stays loaded.
    await flagsFor({ method: "POST", body: JSON.stringify({ text: "a" }) });
    residentBytes = await resident();
  });
  afterEach(async () => {
    expect((await call(`${edge.process.metricsUrl}/healthz`)).status).toBe(200);
    expect(edge.process.log()).not.toMatch(/"level":"(error|fatal)"/);
    expect((await resident()) - residentBytes).toBeLessThan(maxGrowthBytes);
  });

  const managementUrl = () => system.managements[0]?.url as string;

  async function makeFlag(key: string, conditions: Condition[], more: object = {}): Promise<void> {
    const targeting_rules = conditions.length === 0 ? [] : [{ conditions }];
    const body = { key, name: key, enabled: true, targeting_rules, ...more };
    await must(`${managementUrl()}/api/v1/flags`, { method: "POST", key: tenant.serverKey, body });
  }

  async function resident(): Promise<number> {
    const text = await (await fetch(`${edge.process.metricsUrl}/metrics`)).text();
    return Number(/^process_resident_memory_bytes\S* (\S+)$/m.exec(text)?.[1]);
  }

  const flagsPath = "/api/v1/sdk/flags";
  const bearer = () => ({ authorization: `Bearer ${tenant.clientKey}` });
  const ordinary = (): RawRequest => ({
    method: "GET",
    path: `${flagsPath}?user_id=ordinary`,
    headers: bearer(),
  });

  /** Returns status and body of a request, while ordinary requests must be served at the usual speed. */
  async function ask(asked: Partial<RawRequest>): Promise<{ status: number; text: string }> {
    const whole = {
      method: "GET",
      path: flagsPath,
      ...asked,
      headers: {
        ...bearer(),
        ...(asked.body === undefined ? {} : { "content-type": "application/json" }),
        ...asked.headers,
      },
    };
    const { answer, ...took } = await disturb(edge.url, whole, {
      ordinary: ordinary(),
      boundMs: quickMs,
    });
    expect(took.ordinaryMs).toBeLessThan(quickMs);
    expect(took.hostileMs).toBeLessThan(quickMs);
    return answer;
  }

  async function flagsFor(
    asked: Partial<RawRequest>,
  ): Promise<Record<string, boolean> | undefined> {
    const { status, text } = await ask(asked);
    return status === 200 ? JSON.parse(text).flags : undefined;
  }

  const inBody = (body: string | Buffer): Partial<RawRequest> => ({ method: "POST", body });
  const inHeader = (context: string): Partial<RawRequest> => ({
    headers: { "x-user-context": headerBytes(context) },
  });

  /** Returns the flags that the context in a body switches on, or undefined if the context is rejected. */
  async function onFor(body: string): Promise<string[] | undefined> {
    const flags = await flagsFor(inBody(body));
    return flags && Object.keys(flags).filter((key) => flags[key]);
  }

  async function statusAndCode(asked: Partial<RawRequest>): Promise<[number, string]> {
    const { status, text } = await ask(asked);
    return [status, JSON.parse(text).error?.code];
  }

  const deepList = (levels: number) => `${"[".repeat(levels)}${"]".repeat(levels)}`;
  const deepObject = (levels: number) => `${'{"a":'.repeat(levels)}1${"}".repeat(levels)}`;
  const everywhere: [place: string, levels: number, send: (json: string) => Partial<RawRequest>][] =
    [
      ["a body", bodyLimitBytes, inBody],
      [
        "the body of an evaluation",
        bodyLimitBytes,
        (body) => ({ ...inBody(body), path: "/api/v1/sdk/evaluate?key=plain" }),
      ],
      ["X-User-Context", userHeadersLimitBytes, inHeader],
      [
        "X-User-Context in base64",
        Math.floor((userHeadersLimitBytes * 3) / 4),
        (json) => inHeader(Buffer.from(json).toString("base64")),
      ],
      [
        "X-User-Context of a stream",
        userHeadersLimitBytes,
        (json) => ({ ...inHeader(json), path: "/api/v1/sdk/stream" }),
      ],
    ];

  describe.each(everywhere)("an invalid context in %s", (_place, limitBytes, send) => {
    it.each([
      ["an unfinished nesting of lists", "[".repeat(limitBytes)],
      ["an unfinished nesting of objects", '{"a":'.repeat(Math.floor(limitBytes / 5))],
      ["a list of lists of lists", deepList(limitBytes / 2 - 1)],
      ["a nesting of lists in an attribute", `{"a":${deepList(limitBytes / 2 - 8)}}`],
      ["a nesting of objects", deepObject(Math.floor(limitBytes / 6) - 1)],
      [
        "a nesting of users",
        `${'{"user":'.repeat(limitBytes / 16)}{}${"}".repeat(limitBytes / 16)}`,
      ],
      ["an object under an inherited name", '{"__proto__":{"polluted":"mine"}}'],
      ["a number of too many digits", `{"number":${"9".repeat(limitBytes - 20)}}`],
    ])("%s is rejected", async (_what, json) => {
      expect(await statusAndCode(send(json))).toEqual([400, "VALIDATION_001"]);
    });
  });

  const inherited = '{"__proto__":"mine","toString":"mine"}';

  describe("an OFREP context", () => {
    const evaluate = async (context: string) => {
      const { status, text } = await ask({
        ...inBody(`{"context":${context}}`),
        path: "/ofrep/v1/evaluate/flags",
      });
      expect(status).toBe(200);
      const { flags } = JSON.parse(text) as { flags: { key: string; value: boolean }[] };
      return flags.filter(({ value }) => value).map(({ key }) => key);
    };

    it.each([
      ["a nesting of lists", `{"a":${deepList(32_000)}}`],
      ["a nesting of objects", deepObject(10_000)],
      ["inherited names with objects", '{"__proto__":{"polluted":"mine"},"constructor":{"a":1}}'],
      ["a number beyond a double", '{"number":1e400}'],
    ])("with %s is evaluated without it", async (_what, context) => {
      expect(await evaluate(context)).toEqual([]);
    });

    it("may have attributes with inherited names", async () => {
      expect(await evaluate(inherited)).toEqual(inheritedFlags);
    });
  });

  it("attributes with inherited names are set only for users that have them", async () => {
    const list = inheritedNames.map((name) => `${name}=mine`).join(",");
    for (const asked of [inBody(inherited), { headers: { "x-user-attributes": list } }]) {
      const flags = await flagsFor(asked);
      expect(inheritedFlags.map((flag) => flags?.[flag])).toEqual([true, true]);
    }
    expect(await onFor("{}")).toEqual([]);
  });

  describe("a very large context", () => {
    const names = Array.from({ length: 9_000 }, (_, index) =>
      String.fromCodePoint(0x21 + (index % 93), 0x21 + Math.floor(index / 93)),
    ).filter((name) => !/["\\]/.test(name));

    it("is evaluated with as many attributes as fit into a body", async () => {
      const fields = names.map((name) => `"${name}":1`).join(",");
      expect(names.length).toBeGreaterThan(8_500);
      expect(await onFor(`{${fields},"list":"last"}`)).toEqual(["has-last"]);
      const list = names.slice(0, 3_000).filter((name) => !/[,= ]/.test(name));
      const header = `${list.map((name) => `${name}=`).join(",")},list=last`;
      const flags = await flagsFor({ headers: { "x-user-attributes": header } });
      expect(flags?.["has-last"]).toBe(true);
    });

    it("is evaluated with a long list", async () => {
      const list = "1,".repeat(10_000);
      expect(await onFor(`{"list":[${list}"LAST"]}`)).toEqual(["has-last"]);
      expect(await onFor(`{"list":[${list}1]}`)).toEqual(["not-last"]);
      const empty = '"",'.repeat(20_000);
      expect(await onFor(`{"list":[${empty}"last"]}`)).toEqual(["has-last"]);
    });

    it("is evaluated with a long text", async () => {
      const text = "a".repeat(60_000);
      expect(await onFor(`{"text":"${text}the END"}`)).toEqual(["ends-so"]);
      expect(await onFor(`{"text":"${"\\u0130".repeat(10_000)}"}`)).toEqual([]);
      expect(await onFor(`{"id":"${text}"}`)).toEqual(
        bucketOf("half", text) < 5_000 ? ["half"] : [],
      );
    });
  });

  describe("headers with the user", () => {
    const filler = (bytes: number) => "a".repeat(bytes);

    it("are rejected with all other headers if they exceed the server's limit", async () => {
      const headers = { "x-user-id": filler(40_000) };
      expect(await statusAndCode({ headers })).toEqual([413, "VALIDATION_002"]);
      const many = Object.fromEntries(
        Array.from({ length: 1_500 }, (_, index) => [`x-user-a${index}`, filler(20)]),
      );
      expect(await statusAndCode({ headers: many })).toEqual([413, "VALIDATION_002"]);
    });

    it("are joined when repeated, as HTTP defines", async () => {
      const twice = (name: string, ...values: string[]) => ask({ headers: { [name]: values } });
      const on = ({ text }: { text: string }) =>
        Object.entries(JSON.parse(text).flags as Record<string, boolean>)
          .filter(([, value]) => value)
          .map(([key]) => key);
      expect(on(await twice("x-user-id", "a", "b"))).toEqual(
        bucketOf("half", "a, b") < 5_000 ? ["half"] : [],
      );
      expect(on(await twice("x-user-attributes", "list=first", "list=last"))).toEqual(["has-last"]);
      expect((await twice("x-user-context", "{}", "{}")).status).toBe(400);
    });
  });

  describe("a rule", () => {
    function regex(value: string): Condition {
      return { attribute: "text", operator: "matches_regex", value };
    }

    it("with a hostile pattern never stalls the edge, regardless of the text", async () => {
      for (const [index, pattern] of hostilePatterns.entries())
        await makeFlag(`hostile-${index}`, [{ ...regex(pattern), attribute: "hostile" }]);
      await eventually(async () => {
        const last = `hostile-${hostilePatterns.length - 1}`;
        return (await flagsFor({}))?.[last] === false;
      });
      const parts = ["a", "x", "aA ", "é", "=", "\\u0000", "ab"];
      const texts = parts.flatMap((part) =>
        [100, 2_000, 4_000, 60_000].map((characters) => {
          const times = Math.floor(characters / Math.max(part.length, Buffer.byteLength(part)));
          return `${part.repeat(times)}!`;
        }),
      );
      for (const text of texts) expect(await onFor(`{"hostile":"${text}"}`)).toBeDefined();
      const list = Array.from({ length: 500 }, () => `"${"a".repeat(100)}!"`).join(",");
      expect(await onFor(`{"hostile":[${list}]}`)).toBeDefined();
      expect(await onFor('{"hostile":"=x"}')).toEqual(["hostile-2", "hostile-6"]);
    });

    it("with the maximum number of conditions is evaluated without a stall", async () => {
      const conditions = (rule: number) =>
        Array.from({ length: 50 }, (_, index) => ({
          attribute: "many",
          ...(index === 49
            ? { operator: "equals", value: `last ${rule}` }
            : { operator: "not_contains", value: `ab${rule}-${index}` }),
        }));
      await makeFlag("many-conditions", [], {
        targeting_rules: Array.from({ length: 100 }, (_, rule) => ({
          conditions: conditions(rule),
        })),
      });
      await eventually(async () => (await flagsFor({}))?.["many-conditions"] === false);
      expect(await onFor(`{"many":"${"a".repeat(1_000)}"}`)).toEqual([]);
      expect(await onFor('{"many":"last 99"}')).toEqual(["many-conditions"]);
    });
  });

  it("all of these together end no process, and leave nothing in memory", async () => {
    const bodies = [
      "[".repeat(bodyLimitBytes),
      deepObject(10_000),
      `{"a":"${"a".repeat(65_000)}"}`,
      `{"list":[${"1,".repeat(30_000)}1]}`,
    ];
    for (let round = 0; round < 10; round += 1)
      await Promise.all(
        bodies.flatMap((body) => [
          ask(inBody(body)),
          ask({ ...inBody(body), path: "/ofrep/v1/evaluate/flags" }),
        ]),
      );
    expect(await onFor('{"list":"last"}')).toEqual(["has-last"]);
  });
}
