import { parseInstant } from "@halyard/contracts";
import { call, isThorough, someOf, startReceiver } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { databaseContent } from "../src/checks/database-content.ts";
import { compileSchema, problemOfAnswer } from "../src/checks/document-checks.ts";
import {
  enableAt,
  type FilledTenant,
  fillTenant,
  idsOf,
  pathOf,
} from "../src/stories/filled-tenant.ts";
import { startSystem } from "../src/system/system.ts";
import { createTenant, must, operatorToken } from "../src/system/tenancy.ts";
import { exampleOf, type IdsByField, wrongBodies } from "../src/traffic/bad-bodies.ts";
import { generateBodies, type Mend, mendAll } from "../src/traffic/generated-bodies.ts";
import {
  contentOf,
  type Operation,
  operations,
  resolve,
  type Schema,
} from "../src/traffic/openapi.ts";
import {
  describe as inWords,
  type RawAnswer,
  type RawRequest,
  sendRaw,
} from "../src/traffic/raw-request.ts";

/**
 * Sends every kind of invalid request to every route of the public API. The response must be the documented error,
 * nothing may be changed, and the processes must keep running. The routes come from the generated OpenAPI document, so
 * new routes are included. A new kind of id must be added to `idsOf`.
 */
const statusOfCode: Record<string, number> = {
  AUTH_001: 401,
  AUTH_002: 403,
  NOT_FOUND_001: 404,
  VALIDATION_001: 400,
  VALIDATION_002: 413,
  VALIDATION_003: 415,
  CONFLICT_001: 409,
  CONFLICT_002: 409,
  CONFLICT_003: 412,
  RATE_001: 429,
};
const atOnce = 8;
const managementBodyLimitBytes = 1024 * 1024;
const sdkBodyLimitBytes = 64 * 1024;
const json = { "content-type": "application/json" };

type Expectation = {
  what: string;
  asked: RawRequest;
  codes: readonly string[];
  /** True if the request waits for others of its kind. An organization cannot upload two lists at the same time. */
  oneByOne?: boolean;
};

/** All routes except OFREP, whose errors have another shape. */
const all = operations().filter(({ path }) => !path.startsWith("/ofrep/"));
const withBody = all.filter((operation) => operation.body !== undefined);
const withAnyBody = all.filter(({ body, upload }) => (body ?? upload) !== undefined);
const withIds = all.filter((operation) => operation.pathParameters.length > 0);
/** `npm test` sends half of the kinds of keys, ids and bodies that every route rejects in the same way. */
const fewKinds = 8;
/** Minimum number of valid and of invalid generated bodies for each operation. */
const fewBodies = isThorough ? 9 : 4;
const isSdk = (operation: Operation) => operation.path.startsWith("/api/v1/sdk/");
/** Returns whether an operation evaluates flags for a user. Their headers and bodies can contain any attributes. */
const readsUser = (operation: Operation) =>
  isSdk(operation) && !/\/(ruleset|ruleset\/stream|lists\/\{sha256\}|usage)$/.test(operation.path);
/** Returns whether the body of an operation can contain any attributes. */
const takesAttributes = (operation: Operation) =>
  readsUser(operation) || operation.path.endsWith("/explain");
const disableAt = "2099-01-02T00:00:00Z";

const receiver = await startReceiver();
const system = await startSystem({
  managements: 1,
  schedulers: 1,
  dispatchers: 1,
  meterings: 1,
  edges: 1,
  settings: () => ({
    "sdk-edge": { STREAM_TOKEN_SECRET: "a secret that all edges here share" },
  }),
});
afterAll(async () => {
  await system.close();
  await receiver.close();
});
const gateway = await system.startGateway();
const addresses = { gateway: gateway.url, receiver: receiver.url };
const mine = await fillTenant(await createTenant(gateway.url, { name: "Mine" }), addresses);
const theirs = await fillTenant(await createTenant(gateway.url, { name: "Theirs" }), addresses);

describe("given invalid requests", () => {
  const fieldsOf = (tenant: FilledTenant): IdsByField => ({
    user_id: tenant.userId,
    organization: tenant.organizationId,
    flag_id: tenant.flagId,
    environment_id: tenant.environmentId,
    enable_at: enableAt,
    disable_at: disableAt,
    url: receiver.url,
  });

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const keyFor = (operation: Operation) =>
    bearer(operation.accepts.has("serverKey") ? mine.serverKey : operatorToken);

  /** Returns a valid request, of which callers make one part invalid. */
  function right(operation: Operation): RawRequest & { headers: Record<string, string> } {
    const { method, body } = operation;
    const content = contentOf(operation, body && exampleOf(body.schema, fieldsOf(mine)));
    const headers = { ...keyFor(operation), ...content.headers };
    return { ...content, method, path: pathOf(operation, idsOf(mine)), headers };
  }

  /** Sends all requests. Returns descriptions of unexpected responses. */
  async function complaints(expectations: readonly Expectation[]): Promise<string[]> {
    const found: string[] = [];
    const [apart = [], together = []] = [true, false].map((alone) =>
      expectations.filter(({ oneByOne = false }) => oneByOne === alone),
    );
    const work = async (remaining: Expectation[]) => {
      for (let next = remaining.pop(); next !== undefined; next = remaining.pop()) {
        const complaint = await sendRaw(gateway.url, next.asked).then(
          (answer) => complaintAbout(answer, next.codes, next.asked.method),
          (error: Error) => `no response: ${error.message} ${(error.cause as Error)?.message}`,
        );
        if (complaint !== undefined)
          found.push(`${next.what}: ${complaint} [${inWords(next.asked)}]`);
      }
    };
    await Promise.all([work(apart), ...Array.from({ length: atOnce }, () => work(together))]);
    expect(expectations.length).toBeGreaterThan(0);
    return found;
  }

  function complaintAbout(
    answer: RawAnswer,
    codes: readonly string[],
    method: string,
  ): string | undefined {
    if (answer.headers["x-request-id"] === undefined) return "the response has no X-Request-Id";
    if (method === "HEAD") {
      const statuses = codes.map((code) => statusOfCode[code]);
      return statuses.includes(answer.status) ? undefined : `status ${answer.status}`;
    }
    const { error, ...more } = parsed(answer.text) as { error?: Record<string, unknown> };
    const shown = `${answer.status} ${answer.text.slice(0, 200)}`;
    if (error === undefined || Object.keys(more).length > 0) return `not the error shape: ${shown}`;
    if (Object.keys(error).sort().join() !== "category,code,message,status")
      return `not the error's fields: ${shown}`;
    const code = String(error.code);
    if (!codes.includes(code)) return `expected ${codes.join(" or ")}: ${shown}`;
    if (answer.status !== statusOfCode[code] || error.status !== answer.status)
      return `not the code's status: ${shown}`;
    if (error.category !== code.slice(0, code.lastIndexOf("_")))
      return `not the code's category: ${shown}`;
    if (code === "AUTH_001" && answer.headers["www-authenticate"] !== "Bearer")
      return "the header WWW-Authenticate is missing";
    return undefined;
  }

  function parsed(text: string): object {
    try {
      return JSON.parse(text) as object;
    } catch {
      return {};
    }
  }

  /** Checks that the requests changed nothing, and that all processes are still healthy. */
  async function expectNothingDone(work: () => Promise<string[]>): Promise<void> {
    const before = await databaseContent(system.sql);
    expect(await work()).toEqual([]);
    expect(await databaseContent(system.sql)).toEqual(before);
    const { managements, schedulers, dispatchers, meterings, edges } = system;
    const processes = [
      gateway,
      ...managements,
      ...schedulers,
      ...dispatchers,
      ...meterings,
      ...edges.map((edge) => edge.process),
    ];
    for (const each of processes) {
      expect((await call(`${each.metricsUrl}/healthz`)).status).toBe(200);
      expect(each.log()).not.toMatch(/"level":"(error|fatal)"/);
    }
  }

  /** Expects that operations reject all variants of their valid requests with one of the codes, and change nothing. */
  const expectRejected = (
    codes: readonly string[],
    rejecting: readonly Operation[],
    variantsOf: (operation: Operation) => readonly [what: string, change: Partial<RawRequest>][],
  ) =>
    expectNothingDone(() =>
      complaints(
        rejecting.flatMap((operation) =>
          variantsOf(operation).map(([what, change]) => {
            const asked = { ...right(operation), ...change };
            return { what, asked, codes, oneByOne: operation.upload !== undefined };
          }),
        ),
      ),
    );

  it("finds the routes in the document", () => {
    expect(all.length).toBeGreaterThanOrEqual(25);
    expect(withBody.length).toBeGreaterThan(8);
  });

  it("rejects all requests without a valid key", async () => {
    const [, id] = mine.serverKey.split("_");
    const unusedSecret = "A".repeat(43);
    const headers: [string, Record<string, string | string[]>][] = [
      ["no key", {}],
      ["an empty key", { authorization: "" }],
      ["a scheme without a key", { authorization: "Bearer" }],
      ["another scheme", { authorization: `Basic ${mine.serverKey}` }],
      ["two keys in one", { authorization: `Bearer ${mine.serverKey} ${mine.serverKey}` }],
      ["a malformed key", bearer("nonsense")],
      ["a key that is cut off", bearer(mine.serverKey.slice(0, -1))],
      ["a key that is too long", bearer(`${mine.serverKey}A`)],
      ["a very long key", bearer("h".repeat(10_000))],
      ["an unknown key", bearer(`hs_${"a".repeat(16)}_${unusedSecret}`)],
      ["a known id with another secret", bearer(`hs_${id}_${unusedSecret}`)],
      ["a server key with the prefix hc_", bearer(mine.serverKey.replace("hs_", "hc_"))],
      ["a client key with the prefix hs_", bearer(mine.clientKey.replace("hc_", "hs_"))],
      ["the name of an inherited property", bearer("hs___proto_______constructor")],
      ["bytes beyond ASCII", { authorization: "Bearer hs_\u00ff\u00fe" }],
    ];
    await expectRejected(["AUTH_001"], all, (operation) =>
      someOf(headers, fewKinds).map(([what, keyHeaders]) => {
        const { authorization: _, ...others } = right(operation).headers;
        return [what, { headers: { ...others, ...keyHeaders } }];
      }),
    );
  });

  it("rejects the wrong kind of key", async () => {
    const tokens: Record<string, string> = {
      clientKey: mine.clientKey,
      serverKey: mine.serverKey,
      operatorToken,
    };
    await expectRejected(["AUTH_002"], all, (operation) =>
      Object.entries(tokens)
        .filter(([kind]) => !operation.accepts.has(kind))
        .map(([kind, token]) => [`a ${kind}`, withHeaders(right(operation), bearer(token))]),
    );
  });

  it("rejects ids of other tenants in a body", async () => {
    const issuing = withBody.filter(({ body }) =>
      JSON.stringify(body?.schema).includes("IssueKey"),
    );
    await expectRejected(["NOT_FOUND_001", "VALIDATION_001", "AUTH_002"], issuing, ({ body }) => [
      ["a user", { body: JSON.stringify(exampleOf(body?.schema ?? {}, fieldsOf(theirs))) }],
    ]);
  });

  it("returns the same error for a malformed id as for an unknown one", async () => {
    const malformed = [
      // Not malformed, but unknown.
      `${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}`,
      "not-an-id",
      "0",
      "%00",
      "%ff",
      "%",
      "%2e%2e",
      "%2F",
      "..%2f..%2fhealthz",
      "'%20or%20''='",
      "null",
      "[object%20Object]",
      "%F0%9F%9A%A2",
      "a".repeat(5_000),
      "__proto__",
    ];
    await expectRejected(["NOT_FOUND_001"], withIds, (operation) =>
      operation.pathParameters.flatMap((name) =>
        someOf(malformed, fewKinds).map((id): [string, Partial<RawRequest>] => [
          `${name} is ${id.slice(0, 20)}`,
          { path: pathOf(operation, { ...idsOf(mine), [name]: id }) },
        ]),
      ),
    );
  });

  it("rejects bodies that are not JSON in UTF-8", async () => {
    const deep = "[".repeat(30_000);
    const bodies: [string, string | Buffer][] = [
      ["broken JSON", '{"key": '],
      ["two values", "{} {}"],
      ["a trailing comma", '{"name": "a",}'],
      ["a bare word", "undefined"],
      ["a raw control character", '{"name": "a\u0007b"}'],
      ["an unfinished nesting", deep],
      ["a nesting that is too deep", deep + "]".repeat(30_000)],
      ["invalid UTF-8", Buffer.from([0x7b, 0x22, 0x6e, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
      ["UTF-8 that is cut off", Buffer.from([0x22, 0xe2, 0x82, 0x22])],
      ["UTF-16", Buffer.from('\ufeff{"name":"a"}', "utf16le")],
      ["an array", "[]"],
      ["an array of the expected object", '[{"name":"a"}]'],
      ["a string", '"name"'],
      ["a number", "1"],
      ["true", "true"],
      ["null", "null"],
    ];
    await expectRejected(["VALIDATION_001"], withBody, () =>
      someOf(bodies, fewKinds).map(([what, body]) => [what, { body }]),
    );
  });

  it("rejects a body where none is expected", async () => {
    const bodies = ['{"x": 1}', '{"to": "before"}', "null", "[]", "1"];
    const withoutBody = all.filter(
      ({ method, body, upload }) => method !== "GET" && (body ?? upload) === undefined,
    );
    await expectRejected(["VALIDATION_001"], withoutBody, (operation) =>
      bodies.map((body) => [body, { headers: { ...keyFor(operation), ...json }, body }]),
    );
  });

  it("rejects other media types, charsets and encodings", async () => {
    const types: [string, Record<string, string>][] = [
      ["no type", {}],
      ["text", { "content-type": "text/plain" }],
      ["a form", { "content-type": "application/x-www-form-urlencoded" }],
      ["a multipart form", { "content-type": "multipart/form-data; boundary=x" }],
      ["XML", { "content-type": "application/xml" }],
      ["nonsense", { "content-type": "nonsense" }],
      ["another charset", { "content-type": "application/json; charset=iso-8859-1" }],
      ["a compressed body", { ...json, "content-encoding": "gzip" }],
    ];
    await expectRejected(["VALIDATION_003"], withAnyBody, (operation) =>
      types.map(([what, type]) => [what, { headers: { ...keyFor(operation), ...type } }]),
    );
  });

  it("rejects bodies that are too large", async () => {
    await expectRejected(["VALIDATION_002"], withBody, (operation) => {
      const limit = isSdk(operation) ? sdkBodyLimitBytes : managementBodyLimitBytes;
      return [["too large", { body: JSON.stringify({ name: "a".repeat(limit) }) }]];
    });
  });

  it("rejects a wrong value in any field, and unknown fields", async () => {
    const strict = withBody.filter((operation) => !takesAttributes(operation));
    await expectRejected(["VALIDATION_001"], strict, (operation) => {
      const schema = operation.body?.schema ?? {};
      const example = exampleOf(schema, fieldsOf(mine)) as object;
      const unknown = ["unknown", "__proto__x", "constructor", "toString", "ID", " name"];
      const bodies = [
        ...wrongBodies(schema, fieldsOf(mine)),
        ...unknown.map((field) => ({ what: `a field ${field}`, body: { ...example, [field]: 1 } })),
      ].map(({ what, body }): [string, { body: string }] => [what, { body: JSON.stringify(body) }]);
      const hidden = JSON.stringify(example).replace("{", '{"__proto__":{"enabled":true},');
      return [...bodies, ["a prototype", { body: hidden }]];
    });
  });

  it("rejects invalid query parameters", async () => {
    const wrong = ["", "%ff", "%00", "a b".replace(" ", "%20"), "-1", "9".repeat(400), "[]"];
    await expectRejected(["VALIDATION_001"], all, (operation) =>
      operation.queryParameters
        .filter(({ schema }) => {
          const { type, pattern, enum: values } = resolve(schema);
          return type !== "string" || (pattern ?? values) !== undefined;
        })
        .flatMap(({ name, schema }) =>
          wrong
            .filter((value) => !isText(schema, value))
            .map((value): [string, Partial<RawRequest>] => [
              `${name} is ${value.slice(0, 20)}`,
              { path: `${right(operation).path.split("?")[0]}?${name}=${value}` },
            ]),
        ),
    );
  });

  it("returns 404 for methods and paths that are not in the document", async () => {
    const methods = [
      "GET",
      "POST",
      "PUT",
      "PATCH",
      "DELETE",
      "HEAD",
      "OPTIONS",
      "TRACE",
      "PROPFIND",
    ];
    const known = new Map<string, Set<string>>();
    for (const { path, method } of all)
      known.set(path, (known.get(path) ?? new Set<string>()).add(method));
    const unknownMethods = [...known].flatMap(([path, there]) =>
      methods
        .filter((method) => !there.has(method === "HEAD" ? "GET" : method))
        .map((method) => ({
          what: "an unknown method",
          asked: {
            method,
            path: pathOf({ ...(all[0] as Operation), path, queryParameters: [] }, idsOf(mine)),
            headers: bearer(mine.serverKey),
          },
          codes: ["NOT_FOUND_001"],
        })),
    );
    const paths = ["/", "/api", "/api/v1", "/api/v2/flags", "/api/v1/nothing", "/api/v1/sdk", "//"];
    const odd = [
      "/api/v1/flags/",
      "/api/v1//flags",
      "/API/V1/FLAGS",
      "/api/v1/flags%00",
      "/%",
      "*",
    ];
    const unknownPaths = [...paths, ...odd].map((path) => ({
      what: "an unknown path",
      asked: { method: "GET", path, headers: bearer(mine.serverKey) },
      codes: ["NOT_FOUND_001"],
    }));
    await expectNothingDone(() => complaints([...unknownMethods, ...unknownPaths]));
  });

  it("rejects headers that are too large, and accepts unusual ones", async () => {
    const large: [string, Record<string, string>][] = [
      ["one large header", { "x-large": "a".repeat(40_000) }],
      [
        "many headers",
        Object.fromEntries(Array.from({ length: 900 }, (_, n) => [`x-${n}`, "a".repeat(40)])),
      ],
    ];
    const odd: Record<string, string> = {
      "x-request-id": "b".repeat(4_000),
      "if-none-match": `"${"c".repeat(4_000)}", W/, ,"`,
      "last-event-id": "d".repeat(4_000),
      "x-forwarded-for": "not, an, address, ::::",
      forwarded: "for=unknown",
      accept: "nonsense/*;q=banana",
      "transfer-encoding-x": "chunked",
    };
    // Only routes that evaluate flags for a user read this header.
    const brokenContext = { "x-user-context": "{broken" };
    await expectRejected(["VALIDATION_002"], all, (operation) =>
      large.map(([what, more]) => [what, withHeaders(right(operation), more)]),
    );
    const readable = all.filter(
      ({ method, accepts }) => method === "GET" && accepts.has("operatorToken"),
    );
    await expectRejected(["AUTH_001"], readable, () => [
      ["unusual headers with an unknown key", { headers: { ...odd, ...bearer("nobody") } }],
    ]);
    await expectRejected(["VALIDATION_001"], all.filter(readsUser), (operation) => [
      ["a malformed user context", withHeaders(right(operation), { ...odd, ...brokenContext })],
    ]);
    for (const operation of all.filter(({ method }) => method === "GET")) {
      const context = readsUser(operation) ? {} : brokenContext;
      const headers = { ...right(operation).headers, ...odd, ...context };
      const asked = { ...right(operation), headers };
      const answer = await sendRaw(gateway.url, asked);
      const requestId = String(answer.headers["x-request-id"]);
      expect([operation.id, answer.status, requestId.length < 200]).toEqual([
        operation.id,
        200,
        true,
      ]);
    }
  });

  it("does not allow pages of other origins to read management routes", async () => {
    const managing = all.filter((operation) => !isSdk(operation));
    const ofCors = /^access-control-/;
    for (const operation of managing) {
      const origin = { origin: "https://example.com" };
      const preflight = { ...origin, "access-control-request-method": operation.method };
      const { path } = right(operation);
      const answers = [
        await sendRaw(gateway.url, { method: "OPTIONS", path, headers: preflight }),
        await sendRaw(gateway.url, { method: operation.method, path, headers: origin }),
      ];
      expect([operation.id, answers.map(({ status }) => status)]).toEqual([
        operation.id,
        [404, 401],
      ]);
      const sent = answers.flatMap(({ headers }) => Object.keys(headers));
      expect(sent.filter((name) => ofCors.test(name))).toEqual([]);
    }
  });

  it("rejects an invalid Idempotency-Key", async () => {
    const idempotent = all.filter(({ headers }) => headers.has("Idempotency-Key"));
    expect(idempotent.length).toBeGreaterThan(5);
    await expectRejected(["VALIDATION_001"], idempotent, (operation) =>
      ["", "a".repeat(300), "\u00e9"].map((key) => [
        "an invalid Idempotency-Key",
        withHeaders(right(operation), { "idempotency-key": key }),
      ]),
    );
  });

  describe("and the document's own schemas and examples", () => {
    const seed = Number(process.env.BODIES_SEED ?? 16);
    const documented = inOrderOfEffects(operations());
    let tenant: FilledTenant;
    let streamPath: string;

    beforeAll(async () => {
      const addresses = { gateway: gateway.url, receiver: receiver.url };
      tenant = await fillTenant(await createTenant(gateway.url, { name: "Documented" }), addresses);
      const bulk = await sendRaw(gateway.url, {
        method: "POST",
        path: "/ofrep/v1/evaluate/flags",
        headers: { ...bearer(tenant.serverKey), ...json },
        body: "{}",
      });
      streamPath = JSON.parse(bulk.text).eventStreams[0].endpoint.requestUri;
      // The generated bodies give the tenant's user lesser roles, which would bound the key. The highest role counts.
      await must(`${gateway.url}/api/v1/organizations/${tenant.organizationId}/grants`, {
        method: "POST",
        key: operatorToken,
        body: {
          subject: { user_id: tenant.userId },
          role: "owner",
          scope: { organization: tenant.organizationId },
        },
      });
    });

    /**
     * Replaces values with requirements beyond JSON Schema: existing users and plans, future times, hosts, and
     * patterns.
     */
    const mend: Mend = (field, value) => {
      // JSON Schema cannot describe two decimals: `multipleOf` rejects 0.07.
      if (typeof value === "number" && field === "rollout_percentage" && value > 0 && value < 100)
        return Math.round(value);
      if (typeof value !== "string") return value;
      const isTime = parseInstant(value) !== undefined;
      const replacements: Record<string, [applies: boolean, value: string]> = {
        user_id: [/^[0-9a-f-]{36}$/i.test(value), tenant.userId],
        organization: [/^[0-9a-f-]{36}$/i.test(value), tenant.organizationId],
        project: [/^[0-9a-f-]{36}$/i.test(value), tenant.projectId],
        environments: [/^[0-9a-f-]{36}$/i.test(value), tenant.environmentId],
        // JSON Schema does not describe that only server keys have a scope.
        kind: [["client", "reader"].includes(value), "server"],
        // Owners exist in organizations only.
        role: [value === "owner", "admin"],
        flag_id: [/^[0-9a-f-]{36}$/i.test(value), tenant.flagId],
        environment_id: [/^[0-9a-f-]{36}$/i.test(value), tenant.environmentId],
        apply_at: [isTime, enableAt],
        flag_ids: [/^[0-9a-f-]{36}$/i.test(value), tenant.flagId],
        plan: [value.length >= 1 && value.length <= 50, "pro"],
        url: [[...value].length <= 2_048, receiver.url],
        secret: [/^\P{Cs}{1,256}$/u.test(value), "secret"],
        enable_at: [isTime, enableAt],
        disable_at: [isTime, disableAt],
        expires_at: [isTime, disableAt],
        start: [isTime, "2026-10-31T09:00:00Z"],
        end: [isTime, "2026-10-31T09:01:00Z"],
        "value of matches_regex": [value.length <= 500, "^a"],
      };
      const [applies, replacement] = replacements[field] ?? [false, ""];
      return applies ? replacement : value;
    };

    function askWith(operation: Operation, body: unknown): RawRequest {
      const token = operation.accepts.has("serverKey") ? tenant.serverKey : operatorToken;
      const path =
        operation.path === "/ofrep/v1/stream"
          ? streamPath
          : pathOf(operation, { ...idsOf(tenant), ...made });
      const content = contentOf(operation, body);
      const headers = { ...bearer(token), ...content.headers };
      return { ...content, method: operation.method, path, headers };
    }

    /** Ids of what the examples made, which the tenant did not have before. */
    const made: Record<string, string> = {};
    const exampleFor = ({ body }: Operation) => body && mendAll(body.example, mend);

    /** Returns the differences between the responses, the document and the expectations. */
    async function differences(
      requests: readonly {
        operation: Operation;
        body: unknown;
        expected: (status: number) => string | undefined;
      }[],
    ): Promise<string[]> {
      const found: string[] = [];
      const remaining = [...requests].reverse();
      const work = async () => {
        for (let next = remaining.pop(); next !== undefined; next = remaining.pop()) {
          const { operation, body, expected } = next;
          const answer = await sendRaw(gateway.url, askWith(operation, body));
          const problem = expected(answer.status) ?? problemOfAnswer(operation, answer);
          if (problem !== undefined)
            found.push(`${operation.id} ${JSON.stringify(body)}: ${problem} [${answer.text}]`);
        }
      };
      await Promise.all(Array.from({ length: atOnce }, work));
      return found;
    }

    it("has a working example for every operation", async () => {
      // One change request can be applied, withdrawn or rejected.
      const isStep = ({ path }: Operation) => path.includes("/change-requests/{requestId}/");
      const examples = documented.filter((each) => each.method !== "DELETE" && !isStep(each));
      for (const operation of examples) {
        const body = exampleFor(operation);
        expect(
          await differences([
            {
              operation,
              body,
              expected: (status) => (status < 300 ? undefined : `status ${status}`),
            },
          ]),
        ).toEqual([]);
      }
    });

    it(`agrees with its schemas about generated bodies, with the seed ${seed}`, async () => {
      const generated = documented.map(withBodyOnGet).flatMap((operation) =>
        generateBodies(operation, { seed, mend }).map(({ body, problem }) => ({
          operation,
          body,
          fits: problem === undefined,
          expected: (status: number) =>
            (status === 400) === (problem !== undefined)
              ? undefined
              : `status ${status}, but the schema reports ${problem ?? "no problem"}`,
        })),
      );
      for (const operation of withBody)
        for (const verdict of [true, false]) {
          const such = generated.filter(
            ({ operation: { id }, fits }) => id === operation.id && fits === verdict,
          );
          expect([operation.id, verdict, such.length > fewBodies]).toEqual([
            operation.id,
            verdict,
            true,
          ]);
        }
      expect(await differences(generated)).toEqual([]);
    });

    it("describes errors, responses without a body and deletions correctly", async () => {
      const variants: [what: string, change: (asked: RawRequest) => RawRequest][] = [
        [
          "no key",
          ({ headers: _, path, ...asked }) => ({ ...asked, path: path.split("?")[0] ?? "" }),
        ],
        [
          "a text",
          (asked) => withHeaders({ ...asked, body: "text" }, { "content-type": "text/plain" }),
        ],
        ["its ETag", (asked) => withHeaders(asked, { "if-none-match": "*" })],
        ["another version", (asked) => withHeaders(asked, { "if-match": '"999"' })],
        ["no ETag", (asked) => withHeaders(asked, { "if-match": "nonsense" })],
        [
          "an unknown id",
          (asked) => ({ ...asked, path: asked.path.replace(/[0-9a-f-]{36}/g, unknownId) }),
        ],
      ];
      const found: string[] = [];
      for (const operation of documented.filter(({ method }) => method !== "DELETE"))
        for (const [what, change] of variants) {
          const answer = await sendRaw(
            gateway.url,
            change(askWith(operation, exampleFor(operation))),
          );
          const problem = problemOfAnswer(operation, answer);
          if (problem !== undefined) found.push(`${operation.id} with ${what}: ${problem}`);
        }
      // A used audience cannot be deleted.
      const using = `${gateway.url}/api/v1/flags/${tenant.audienceFlagId}`;
      await must(using, { method: "DELETE", key: tenant.serverKey });
      const ofPeople = `${gateway.url}/api/v1/organizations/${tenant.organizationId}`;
      const byOperator = { key: operatorToken };
      const { invitations } = await must(`${ofPeople}/invitations`, byOperator);
      const { grants } = await must(`${ofPeople}/grants`, byOperator);
      made.invitationId = invitations[0].id;
      const [{ user: invited }] = invitations;
      made.grantId = grants.find(
        (grant: { subject: { user_id?: string } }) => grant.subject.user_id === invited.id,
      ).id;
      for (const operation of documented.filter(({ method }) => method === "DELETE")) {
        const answer = await sendRaw(gateway.url, askWith(operation, undefined));
        const problem = problemOfAnswer(operation, answer);
        if (problem !== undefined || answer.status !== 204)
          found.push(`${operation.id}: ${problem ?? answer.text}`);
      }
      expect(found).toEqual([]);
    });
  });
});

const unknownId = "00000000-0000-7000-8000-000000000000";

const withHeaders = (asked: RawRequest, headers: Record<string, string>): RawRequest => ({
  ...asked,
  headers: { ...asked.headers, ...headers },
});

/** Returns whether a value of a query is a text that the schema accepts. */
function isText(schema: Schema, value: string): boolean {
  if (resolve(schema).type !== "string") return false;
  try {
    return compileSchema(schema)(decodeURIComponent(value)) === undefined;
  } catch (error) {
    if (error instanceof URIError) return false;
    throw error;
  }
}

/** SDK endpoints read a body on `GET` as on `POST`. The document omits it, because OpenAPI advises against it. */
function withBodyOnGet(operation: Operation): Operation {
  const { method, path, body } = operation;
  const readsBody = method === "GET" && /^\/api\/v1\/sdk\/(flags|evaluate)$/.test(path);
  const posted = operations().find((other) => other.method === "POST" && other.path === path);
  return { ...operation, body: readsBody ? posted?.body : body };
}

/**
 * Sorts the read of a chunk first, because a change of the list removes the chunk. Sorts deletions last, from the leaves
 * up, and those that only the operator may send at the end.
 */
function inOrderOfEffects(all: readonly Operation[]): Operation[] {
  const rank = ({ method, accepts, path }: Operation) => {
    if (path.endsWith("/lists/{sha256}")) return -1;
    if (method !== "DELETE") return 0;
    return (accepts.has("serverKey") ? 1_000 : 2_000) - path.split("/").length;
  };
  return all.toSorted((one, other) => rank(one) - rank(other));
}
