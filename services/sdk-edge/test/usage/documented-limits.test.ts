import { readFileSync } from "node:fs";
import { afterEach, describe, expect, it } from "@jest/globals";
import type { StreamSlots } from "../../src/admission/stream-slots.ts";
import { edgeIsStopping } from "../../src/http/take-slot.ts";
import { apiKey, flagEntry, organizationWith } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";
import { streamAddress, tokenSecret } from "../http/ofrep/asking.ts";

/** Checks that responses have the rate limit fields that the OpenAPI document lists. */
type Documented = { $ref?: string; headers?: Record<string, unknown> };
type Document = {
  paths: Record<string, Record<string, { responses: Record<string, Documented> }>>;
  components: { responses: Record<string, Documented> };
};
const file = new URL("../../../../docs/openapi.json", import.meta.url);
const document = JSON.parse(readFileSync(file, "utf8")) as Document;

function documentedFields(method: string, path: string, status: number): string[] {
  const given = document.paths[path]?.[method.toLowerCase()]?.responses[status];
  if (given === undefined) throw new Error(`${method} ${path} has no ${status} in the document`);
  const shared = given.$ref?.replace("#/components/responses/", "");
  const response = shared === undefined ? given : document.components.responses[shared];
  return limitFields.filter((name) => name in (response?.headers ?? {}));
}

const limitFields = ["RateLimit", "RateLimit-Policy"];

const client = apiKey();
/** Slots of an edge that has begun to stop after it admitted the request. */
const noSlots: StreamSlots = {
  take: () => edgeIsStopping,
  release: () => undefined,
  knowsOthers: () => true,
};
let edge: EdgeServer;
afterEach(() => edge.stop());

type Asking = { search?: string; headers?: Record<string, string>; body?: unknown };
/** Invalid requests. */
const unlabeled = { headers: { "content-type": "text/plain" }, body: {} };
const tooLarge = { body: { padding: "x".repeat(64 * 1024) } };
const badContext = { headers: { "x-user-context": "{" } };
const wrongKey = { headers: { authorization: `Bearer ${apiKey().text}` } };
const flags = "/api/v1/sdk/flags";
const evaluate = "/api/v1/sdk/evaluate";
const stream = "/api/v1/sdk/stream";
const ruleset = "/api/v1/sdk/ruleset";
const rulesetStream = "/api/v1/sdk/ruleset/stream";
const allByOfrep = "/ofrep/v1/evaluate/flags";
const oneByOfrep = "/ofrep/v1/evaluate/flags/{key}";

const answers: [string, string, number, Asking][] = [
  ["GET", flags, 200, {}],
  ["GET", flags, 304, { headers: { "if-none-match": "*" } }],
  ["GET", flags, 400, badContext],
  ["GET", flags, 401, wrongKey],
  ["POST", flags, 413, tooLarge],
  ["POST", flags, 415, unlabeled],
  ["GET", evaluate, 200, { search: "?key=checkout" }],
  ["GET", evaluate, 400, {}],
  ["GET", evaluate, 403, { search: "?key=checkout&explain=true" }],
  ["GET", evaluate, 404, { search: "?key=no" }],
  ["POST", evaluate, 400, { search: "?key=checkout", body: { user: { id: {} } } }],
  ["GET", stream, 400, badContext],
  ["GET", ruleset, 401, wrongKey],
  ["GET", ruleset, 403, {}],
  ["GET", rulesetStream, 403, {}],
  ["GET", stream, 401, wrongKey],
  ["GET", stream, 503, {}],
  ["POST", allByOfrep, 200, { body: {} }],
  ["POST", allByOfrep, 400, { body: { context: 7 } }],
  ["POST", allByOfrep, 401, { ...wrongKey, body: {} }],
  ["POST", allByOfrep, 413, tooLarge],
  ["POST", allByOfrep, 415, unlabeled],
  ["POST", oneByOfrep, 404, { body: {} }],
  ["POST", oneByOfrep, 415, unlabeled],
];

const start = (requests_per_month: number) =>
  startEdgeServer(
    [...organizationWith({ requests_per_month }), client.entry, flagEntry({ enabled: true })],
    { countsUsage: true, slots: noSlots, streamTokenSecret: tokenSecret },
  );

function ask(method: string, path: string, { search = "", headers, body }: Asking) {
  return fetch(edge.url + path.replace("{key}", "no") + search, {
    method,
    headers: {
      authorization: `Bearer ${client.text}`,
      "content-type": "application/json",
      ...headers,
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
}

const fieldsOf = ({ headers }: Response) => limitFields.filter((name) => headers.has(name));

describe("given an organization whose month has a limit", () => {
  it.each(answers)(
    "%s %s sends the documented fields with %d",
    async (method, path, status, asking) => {
      edge = await start(1_000);
      const answered = await ask(method, path, asking);
      expect(answered.status).toBe(status);
      expect(fieldsOf(answered)).toEqual(documentedFields(method, path, status));
    },
  );

  it("an OpenFeature stream that cannot open sends the documented fields", async () => {
    edge = await start(1_000);
    const answered = await fetch(await streamAddress(edge, client.text));
    expect(answered.status).toBe(503);
    expect(fieldsOf(answered)).toEqual(documentedFields("GET", "/ofrep/v1/stream", 503));
  });

  it.each([
    ["GET", flags],
    ["GET", stream],
    ["POST", allByOfrep],
  ])("%s %s sends the documented fields with 429", async (method, path) => {
    edge = await start(0);
    const answered = await ask(method, path, method === "POST" ? { body: {} } : {});
    expect(answered.status).toBe(429);
    expect(fieldsOf(answered)).toEqual(documentedFields(method, path, 429));
  });
});
