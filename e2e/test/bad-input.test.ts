import { call, type ServiceProcess } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { exampleOf, type IdsByField, wrongBodies } from "../src/bad-bodies.ts";
import { createFlags } from "../src/changes.ts";
import { databaseContent } from "../src/database-content.ts";
import { type Operation, operations } from "../src/openapi.ts";
import {
  describe as inWords,
  type RawAnswer,
  type RawRequest,
  sendRaw,
} from "../src/raw-request.ts";
import { type System, startSystem } from "../src/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../src/tenancy.ts";

/**
 * Every route of the public document, asked in every wrong way: the answer is the contract's error,
 * nothing is half done, and the processes go on. Routes come from the generated document, so a new
 * one is walked as soon as it is there; a new kind of id has to be made known in `idsOf`.
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

type Known = Tenant & { flagId: string; keyId: string };
type Expectation = { what: string; asked: RawRequest; codes: readonly string[] };

const all = operations();
const withBody = all.filter((operation) => operation.body !== undefined);
const withIds = all.filter((operation) => operation.pathParameters.length > 0);
const isSdk = (operation: Operation) => operation.path.startsWith("/api/v1/sdk/");

describe("given requests that are wrong", () => {
  let system: System;
  let gateway: ServiceProcess;
  let mine: Known;
  let theirs: Known;

  beforeAll(async () => {
    system = await startSystem({ managements: 1, edges: 1 });
    gateway = await system.startGateway();
    mine = await knownTenant("Mine");
    theirs = await knownTenant("Theirs");
  });
  afterAll(() => system?.close());

  async function knownTenant(name: string): Promise<Known> {
    const tenant = await createTenant(gateway.url, { name });
    const [flag] = await createFlags(gateway.url, tenant.serverKey, ["a-flag"]);
    const keys = `projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;
    const spare = await must(`${gateway.url}/api/v1/${keys}`, {
      method: "POST",
      key: operatorToken,
      body: { kind: "server", name: "spare", user_id: tenant.userId },
    });
    return { ...tenant, flagId: flag?.id as string, keyId: spare.id };
  }

  const idsOf = (tenant: Known): Record<string, string> => ({
    organizationId: tenant.organizationId,
    projectId: tenant.projectId,
    environmentId: tenant.environmentId,
    envId: tenant.environmentId,
    id: tenant.flagId,
    flagId: tenant.flagId,
    keyId: tenant.keyId,
    userId: tenant.userId,
  });
  const fieldsOf = (tenant: Known): IdsByField => ({ user_id: tenant.userId });

  /** The path with ids in place of its parameters, and what its query requires. */
  function pathOf(operation: Operation, ids: Record<string, string>): string {
    const path = operation.path.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
      const id = ids[name];
      if (id === undefined) throw new Error(`${operation.id}: what is :${name}? Add it to idsOf.`);
      return id;
    });
    const required = operation.queryParameters.filter((parameter) => parameter.required);
    const query = required.map(({ name }) => `${name}=a-flag`).join("&");
    return query === "" ? path : `${path}?${query}`;
  }

  const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
  const keyFor = (operation: Operation) =>
    bearer(operation.accepts.has("serverKey") ? mine.serverKey : operatorToken);

  /** A request that would succeed, to be spoilt in one way. */
  function right(operation: Operation): RawRequest & { headers: Record<string, string> } {
    return {
      method: operation.method,
      path: pathOf(operation, idsOf(mine)),
      headers: { ...keyFor(operation), ...(operation.body === undefined ? {} : json) },
      ...(operation.body === undefined
        ? {}
        : { body: JSON.stringify(exampleOf(operation.body.schema, fieldsOf(mine))) }),
    };
  }

  /** Asks all, and answers in words what was not answered as expected. */
  async function complaints(expectations: readonly Expectation[]): Promise<string[]> {
    const found: string[] = [];
    const remaining = [...expectations];
    const work = async () => {
      for (let next = remaining.pop(); next !== undefined; next = remaining.pop()) {
        const complaint = await sendRaw(gateway.url, next.asked).then(
          (answer) => complaintAbout(answer, next.codes, next.asked.method),
          (error: Error) => `no answer: ${error.message} ${(error.cause as Error)?.message}`,
        );
        if (complaint !== undefined)
          found.push(`${next.what}: ${complaint} [${inWords(next.asked)}]`);
      }
    };
    await Promise.all(Array.from({ length: atOnce }, work));
    expect(expectations.length).toBeGreaterThan(0);
    return found;
  }

  function complaintAbout(
    answer: RawAnswer,
    codes: readonly string[],
    method: string,
  ): string | undefined {
    if (answer.headers["x-request-id"] === undefined) return "the answer has no X-Request-Id";
    if (method === "HEAD") {
      const statuses = codes.map((code) => statusOfCode[code]);
      return statuses.includes(answer.status) ? undefined : `answered ${answer.status}`;
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

  /** Nothing was done, and everything goes on. */
  async function expectNothingDone(work: () => Promise<string[]>): Promise<void> {
    const before = await databaseContent(system.sql);
    expect(await work()).toEqual([]);
    expect(await databaseContent(system.sql)).toEqual(before);
    const processes = [gateway, ...system.managements, ...system.edges.map((edge) => edge.process)];
    for (const each of processes) {
      expect((await call(`${each.metricsUrl}/healthz`)).status).toBe(200);
      expect(each.log()).not.toMatch(/"level":"(error|fatal)"/);
    }
  }

  it("finds the routes in the document", () => {
    expect(all.length).toBeGreaterThanOrEqual(25);
    expect(withBody.length).toBeGreaterThan(8);
  });

  it("lets nobody in without a key that works", async () => {
    const [, id] = mine.serverKey.split("_");
    const secretOfNobody = "A".repeat(43);
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
      ["an unknown key", bearer(`hs_${"a".repeat(16)}_${secretOfNobody}`)],
      ["a known id with another secret", bearer(`hs_${id}_${secretOfNobody}`)],
      ["a server key in a client key's dress", bearer(mine.serverKey.replace("hs_", "hc_"))],
      ["a client key in a server key's dress", bearer(mine.clientKey.replace("hc_", "hs_"))],
      ["an inherited property's name", bearer("hs___proto_______constructor")],
      ["bytes beyond ASCII", { authorization: "Bearer hs_\u00ff\u00fe" }],
    ];
    await expectNothingDone(() =>
      complaints(
        all.flatMap((operation) =>
          headers.map(([what, keyHeaders]) => {
            const { authorization: _, ...others } = right(operation).headers;
            const asked = { ...right(operation), headers: { ...others, ...keyHeaders } };
            return { what, asked, codes: ["AUTH_001"] };
          }),
        ),
      ),
    );
  });

  it("lets nobody in with the wrong kind of key", async () => {
    const tokens: Record<string, string> = {
      clientKey: mine.clientKey,
      serverKey: mine.serverKey,
      operatorToken,
    };
    await expectNothingDone(() =>
      complaints(
        all.flatMap((operation) =>
          Object.entries(tokens)
            .filter(([kind]) => !operation.accepts.has(kind))
            .map(([kind, token]) => ({
              what: `a ${kind}`,
              asked: {
                ...right(operation),
                headers: { ...right(operation).headers, ...bearer(token) },
              },
              // An edge knows nothing of the operator.
              codes: [isSdk(operation) ? "AUTH_001" : "AUTH_002"],
            })),
        ),
      ),
    );
  });

  it("shows nothing of another tenant, and changes nothing there", async () => {
    await expectNothingDone(() =>
      complaints(
        withIds.flatMap((operation) =>
          operation.pathParameters.flatMap((name) => {
            const ids = { ...idsOf(mine), [name]: idsOf(theirs)[name] as string };
            const asked = { ...right(operation), path: pathOf(operation, ids) };
            const found = { what: `their ${name}`, asked, codes: ["NOT_FOUND_001"] };
            // The operator may go anywhere, but not with ids that do not belong together.
            const another = operation.pathParameters.length > 1;
            const asOperator = {
              ...asked,
              headers: { ...asked.headers, ...bearer(operatorToken) },
            };
            return [
              ...(operation.accepts.has("serverKey") ? [found] : []),
              ...(operation.accepts.has("operatorToken") && another
                ? [{ ...found, asked: asOperator }]
                : []),
            ];
          }),
        ),
      ),
    );
  });

  it("takes no other tenant's ids in a body", async () => {
    await expectNothingDone(() =>
      complaints(
        withBody
          .filter(({ body }) => JSON.stringify(body?.schema).includes("IssueKey"))
          .map((operation) => ({
            what: "their user",
            asked: {
              ...right(operation),
              body: JSON.stringify(exampleOf(operation.body?.schema ?? {}, fieldsOf(theirs))),
            },
            codes: ["NOT_FOUND_001", "VALIDATION_001", "AUTH_002"],
          })),
      ),
    );
  });

  it("answers an id that cannot be one as one that nothing has", async () => {
    const malformed = [
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
      `${"0".repeat(8)}-0000-7000-8000-${"0".repeat(12)}`,
      "__proto__",
    ];
    await expectNothingDone(() =>
      complaints(
        withIds.flatMap((operation) =>
          operation.pathParameters.flatMap((name) =>
            malformed.map((id) => ({
              what: `${name} is ${id.slice(0, 20)}`,
              asked: {
                ...right(operation),
                path: pathOf(operation, { ...idsOf(mine), [name]: id }),
              },
              codes: ["NOT_FOUND_001"],
            })),
          ),
        ),
      ),
    );
  });

  it("takes no body that is not JSON in UTF-8", async () => {
    const deep = "[".repeat(30_000);
    const bodies: [string, string | Buffer][] = [
      ["broken JSON", '{"key": '],
      ["two values", "{} {}"],
      ["a trailing comma", '{"name": "a",}'],
      ["a bare word", "undefined"],
      ["a raw control character", '{"name": "a\u0007b"}'],
      ["an unfinished nesting", deep],
      ["a nesting that is too deep", deep + "]".repeat(30_000)],
      ["bad UTF-8", Buffer.from([0x7b, 0x22, 0x6e, 0x22, 0x3a, 0x22, 0xff, 0xfe, 0x22, 0x7d])],
      ["UTF-8 that is cut off", Buffer.from([0x22, 0xe2, 0x82, 0x22])],
      ["UTF-16", Buffer.from('\ufeff{"name":"a"}', "utf16le")],
      ["an array", "[]"],
      ["an array of what was asked for", '[{"name":"a"}]'],
      ["a string", '"name"'],
      ["a number", "1"],
      ["true", "true"],
      ["null", "null"],
    ];
    await expectNothingDone(() =>
      complaints(
        withBody.flatMap((operation) =>
          bodies.map(([what, body]) => ({
            what,
            asked: { ...right(operation), body },
            codes: ["VALIDATION_001"],
          })),
        ),
      ),
    );
  });

  it("takes no body of another media type, charset or encoding", async () => {
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
    await expectNothingDone(() =>
      complaints(
        withBody.flatMap((operation) =>
          types.map(([what, typeHeaders]) => ({
            what,
            asked: { ...right(operation), headers: { ...keyFor(operation), ...typeHeaders } },
            codes: ["VALIDATION_003"],
          })),
        ),
      ),
    );
  });

  it("takes no body that is too large", async () => {
    await expectNothingDone(() =>
      complaints(
        withBody.map((operation) => {
          const limit = isSdk(operation) ? sdkBodyLimitBytes : managementBodyLimitBytes;
          const body = JSON.stringify({ name: "a".repeat(limit) });
          return {
            what: "too large",
            asked: { ...right(operation), body },
            codes: ["VALIDATION_002"],
          };
        }),
      ),
    );
  });

  it("takes no wrong value in any field, and no field that it does not know", async () => {
    const strict = withBody.filter((operation) => !isSdk(operation));
    await expectNothingDone(() =>
      complaints(
        strict.flatMap((operation) => {
          const schema = operation.body?.schema ?? {};
          const example = exampleOf(schema, fieldsOf(mine)) as object;
          const unknown = ["unknown", "__proto__x", "constructor", "toString", "ID", " name"];
          const bodies = [
            ...wrongBodies(schema, fieldsOf(mine)),
            ...unknown.map((field) => ({
              what: `an unknown field ${field}`,
              body: { ...example, [field]: 1 },
            })),
          ].map(({ what, body }) => ({ what, body: JSON.stringify(body) }));
          const hidden = JSON.stringify(example).replace("{", '{"__proto__":{"enabled":true},');
          return [...bodies, { what: "a prototype", body: hidden }].map(({ what, body }) => ({
            what,
            asked: { ...right(operation), body },
            codes: ["VALIDATION_001"],
          }));
        }),
      ),
    );
  });

  it("takes no query that does not fit", async () => {
    const wrong = ["", "%ff", "%00", "a b".replace(" ", "%20"), "-1", "9".repeat(400), "[]"];
    await expectNothingDone(() =>
      complaints(
        all.flatMap((operation) =>
          operation.queryParameters
            .filter(({ schema }) => schema.type !== "string" || schema.pattern !== undefined)
            .flatMap(({ name }) =>
              wrong.map((value) => ({
                what: `${name} is ${value.slice(0, 20)}`,
                asked: {
                  ...right(operation),
                  path: `${right(operation).path.split("?")[0]}?${name}=${value}`,
                },
                codes: ["VALIDATION_001"],
              })),
            ),
        ),
      ),
    );
  });

  it("has nothing under a method or path that is not in the document", async () => {
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
        .filter((method) => !there.has(method))
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

  it("refuses headers that are too large, and takes odd ones for what they are", async () => {
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
      "x-user-context": "{broken",
      "x-forwarded-for": "not, an, address, ::::",
      forwarded: "for=unknown",
      accept: "nonsense/*;q=banana",
      "transfer-encoding-x": "chunked",
    };
    await expectNothingDone(async () => [
      ...(await complaints(
        all.flatMap((operation) =>
          large.map(([what, more]) => ({
            what,
            asked: { ...right(operation), headers: { ...right(operation).headers, ...more } },
            codes: ["VALIDATION_002"],
          })),
        ),
      )),
      ...(await complaints(
        all
          .filter(({ method, accepts }) => method === "GET" && accepts.has("operatorToken"))
          .map((operation) => ({
            what: "odd headers with a key of nobody",
            asked: { ...right(operation), headers: { ...odd, ...bearer("nobody") } },
            codes: ["AUTH_001"],
          })),
      )),
    ]);
    for (const operation of all.filter(({ method }) => method === "GET")) {
      const asked = { ...right(operation), headers: { ...right(operation).headers, ...odd } };
      const { status, headers } = await sendRaw(gateway.url, asked);
      expect([operation.id, status, String(headers["x-request-id"]).length < 200]).toEqual([
        operation.id,
        200,
        true,
      ]);
    }
  });

  it("takes conditions on a change only as they are meant", async () => {
    const path = `/api/v1/flags/${mine.flagId}`;
    const change = (headers: Record<string, string>): RawRequest => ({
      method: "PATCH",
      path,
      headers: { ...bearer(mine.serverKey), ...json, ...headers },
      body: JSON.stringify({ name: "never" }),
    });
    await expectNothingDone(() =>
      complaints(
        ['"999"', '"0"', 'W/"1"', "1", '""', "nonsense", '"-1"', `"${"9".repeat(4_000)}"`].map(
          (ifMatch) => ({
            what: `If-Match: ${ifMatch.slice(0, 20)}`,
            asked: change({ "if-match": ifMatch }),
            codes: ["CONFLICT_003", "VALIDATION_001"],
          }),
        ),
      ),
    );
  });

  it("refuses an Idempotency-Key that cannot be one", async () => {
    const idempotent = withBody.filter(
      ({ method, path }) => method === "POST" && !path.startsWith("/api/v1/sdk/"),
    );
    await expectNothingDone(() =>
      complaints(
        idempotent.flatMap((operation) =>
          ["", "a".repeat(300), "\u00e9"].map((idempotencyKey) => ({
            what: "an Idempotency-Key that is none",
            asked: {
              ...right(operation),
              headers: { ...right(operation).headers, "idempotency-key": idempotencyKey },
            },
            codes: ["VALIDATION_001"],
          })),
        ),
      ),
    );
  });
});
