import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { connect } from "node:net";
import { createFlag, deleteFlag, getFlag, listFlags, rotateKey } from "@halyard/contracts";
import { afterAll, describe, expect, it } from "@jest/globals";
import { answer, createProblem, registerRoute, UnavailableError } from "../src/index.ts";
import { type ErrorAnswer, fourFields, givenApp, sendRaw } from "./given-app.ts";

/** Error responses to requests that are valid HTTP, over real connections. */
const id = "018f0000-0000-7000-8000-000000000001";
const key = { authorization: "Bearer good" };
const json = { ...key, "content-type": "application/json" };

/** An error of a library without knowledge of HTTP. */
class BrokerUnavailableError extends Error {
  readonly retryAfterSeconds = 2.2;
}

const given = await givenApp(
  (app) => {
    const authenticate = ({ headers }: { headers: { authorization?: string | undefined } }) =>
      headers.authorization === "Bearer good"
        ? { name: "caller" }
        : createProblem("AUTH_001", "The key is not valid");
    const register = { authenticate, handle: () => createProblem("CONFLICT_001", "Taken") };
    registerRoute(app, createFlag, register);
    registerRoute(app, rotateKey, {
      authenticate,
      handle: ({ body }) => createProblem("NOT_FOUND_001", JSON.stringify(body)),
    });
    registerRoute(app, listFlags, { authenticate, handle: () => answer.ok({ flags: [] }) });
    registerRoute(app, deleteFlag, { authenticate, handle: () => answer.noContent() });
    registerRoute(app, getFlag, {
      authenticate,
      handle: ({ request }) => {
        switch (request.headers["x-fail"] as string) {
          case "unavailable":
            throw new UnavailableError("the database is unavailable", { retryAfterSeconds: 3 });
          case "library":
            throw new BrokerUnavailableError("broker 10.1.2.3 is unavailable");
          default:
            throw new Error("password=hunter2");
        }
      },
    });
  },
  // As with a database, whose lost connections have the same code as those of clients.
  { isOutage: (error) => (error as { code?: string }).code === "ECONNRESET" },
);
afterAll(() => given.close());

async function errorOf(method: string, path: string, init: RequestInit = {}) {
  const answered = await fetch(given.url + path, { method, ...init });
  const body = (await answered.json()) as ErrorAnswer;
  expect(Object.keys(body)).toEqual(["error"]);
  expect(Object.keys(body.error).sort()).toEqual(fourFields);
  expect(body.error.status).toBe(answered.status);
  expect(answered.headers.get("content-type")).toBe("application/json; charset=utf-8");
  expect(answered.headers.get("x-request-id")).toMatch(/^[\x21-\x7e]{1,128}$/);
  return { ...body.error, headers: answered.headers } as {
    code: string;
    status: number;
    message: string;
    headers: Headers;
  };
}

const badName =
  "/name must be one line of text, not blank, without control, bidirectional or zero-width characters";
const twice = "The body has an object with two members of the same name";

const brokenUtf8 = Buffer.concat([
  Buffer.from('{"key":"a","name":"'),
  Buffer.from([0xc3, 0x28]),
  Buffer.from('"}'),
]);

describe("given a request that cannot be served", () => {
  it.each([
    ["an unknown route", "GET", "/api/v1/nothing", {}],
    ["an unknown route with a broken body", "POST", "/api/v1/nothing", { body: "{" }],
    [
      "a method that the path does not have",
      "PATCH",
      "/api/v1/flags",
      { headers: json, body: "{}" },
    ],
    ["an unsupported method", "PROPFIND", "/api/v1/flags", {}],
    ["a path that is not valid UTF-8", "GET", "/api/v1/flags/%ff", {}],
    ["a path with a parameter that is too long", "GET", `/api/v1/flags/${"a".repeat(300)}`, {}],
    ["a malformed id", "GET", "/api/v1/flags/1", { headers: key }],
    ["a malformed id, and a body", "DELETE", "/api/v1/flags/1", { headers: json, body: "{" }],
  ])("returns 404 for %s", async (_what, method, path, init) => {
    expect(await errorOf(method, path, init)).toMatchObject({ code: "NOT_FOUND_001", status: 404 });
  });

  it("returns 401 with the authentication scheme before it reads the body", async () => {
    const error = await errorOf("POST", "/api/v1/flags", {
      body: "{",
      headers: { "content-type": "application/json" },
    });
    expect(error).toMatchObject({ code: "AUTH_001", status: 401 });
    expect(error.headers.get("www-authenticate")).toBe("Bearer");
  });

  it("returns 401 before 404 for a malformed id", async () => {
    expect(await errorOf("GET", "/api/v1/flags/1")).toMatchObject({ code: "AUTH_001" });
  });

  it.each([
    ["broken JSON", '{"key":', "The body is not valid JSON"],
    ["bad UTF-8", brokenUtf8, "The body is not valid UTF-8"],
    ["no body", "", '"" (the whole document) is required: the request needs a JSON body'],
    ["an array", "[]", '"" (the whole document) must be object'],
    ["null", "null", '"" (the whole document) must be object'],
    ["a duplicate field", '{"key":"a","name":"b","key":"c"}', twice],
    ["a duplicate field with an escape", '{"key":"a","name":"b","\\u006bey":"c"}', twice],
    ["a duplicate field of a nested object", '{"key":"a","name":[{"a:":1,"a:":1}]}', twice],
    ["a missing field", '{"key":"a"}', "/name is required"],
    ["an unknown field", '{"key":"a","name":"b","nmae":"c"}', "/nmae is not a known field"],
    [
      "a field named __proto__",
      '{"key":"a","name":"b","__proto__":{"x":1}}',
      "/__proto__ is not a known field",
    ],
    [
      "a field of the wrong type",
      '{"key":"a","name":"b","enabled":"true"}',
      "/enabled must be boolean",
    ],
    ["a control character", '{"key":"a","name":"b\\u0000"}', badName],
    ["a direction override", '{"key":"a","name":"b\\u202ec"}', badName],
    ["a direction isolate", '{"key":"a","name":"b\\u2066c"}', badName],
    ["a zero-width space", '{"key":"a","name":"b\\u200bc"}', badName],
    ["a zero-width joiner", '{"key":"a","name":"b\\u200dc"}', badName],
    ["a byte order mark", '{"key":"a","name":"b\\ufeffc"}', badName],
    [
      "a direction override in the name of a rule",
      '{"key":"a","name":"b","targeting_rules":[{"name":"a\\u202eb","conditions":[]}]}',
      "/targeting_rules/0/name must be text without NUL, bidirectional or zero-width characters or broken Unicode",
    ],
  ])("returns 400 for %s in a body", async (_what, body, message) => {
    const error = await errorOf("POST", "/api/v1/flags", { headers: json, body });
    expect(error).toMatchObject({ code: "VALIDATION_001", status: 400, message });
  });

  it.each([
    ["limit=x", "query parameter /limit must be integer"],
    ["limit=1e2", "query parameter /limit must be integer"],
    ["limit=", "query parameter /limit must be integer"],
    ["limit=0", "query parameter /limit must be >= 1"],
    ["limit=1&limit=2", "query parameter /limit must be given once"],
    ["lmit=1", "query parameter /lmit is not a known field"],
    ["__proto__=1", "query parameter /__proto__ is not a known field"],
    ["cursor=%ff", "the query string is not valid UTF-8"],
  ])("returns 400 for the query %s", async (query, message) => {
    const error = await errorOf("GET", `/api/v1/flags?${query}`, { headers: key });
    expect(error).toMatchObject({ code: "VALIDATION_001", status: 400, message });
  });

  it.each([
    ["text/plain", "x"],
    ["application/x-www-form-urlencoded", "key=a&name=b"],
    ["application/xml", "<flag/>"],
    ["nonsense", "{}"],
    ["application/json-patch+json", '[{"op":"add","path":"/key","value":"a"}]'],
    ["Application/JSON-Patch+JSON; charset=utf-8", "{}"],
    ["application/json; charset=iso-8859-1", '{"key":"a","name":"b"}'],
  ])("returns 415 for a body of the type %s", async (type, body) => {
    const headers = { ...key, "content-type": type };
    const error = await errorOf("POST", "/api/v1/flags", { headers, body });
    expect(error).toMatchObject({ code: "VALIDATION_003", status: 415 });
  });

  it("returns 415 for a compressed body", async () => {
    const headers = { ...json, "content-encoding": "gzip" };
    const error = await errorOf("POST", "/api/v1/flags", { headers, body: "{}" });
    expect(error).toMatchObject({ code: "VALIDATION_003", status: 415 });
  });

  it("does not report an aborted request as an outage", async () => {
    const socket = connect(given.port, "127.0.0.1");
    const head = `Host: x\r\nAuthorization: ${key.authorization}\r\nX-Request-Id: broken-off\r\n`;
    const type = "Content-Type: application/json\r\nContent-Length: 100\r\n";
    socket.write(`POST /api/v1/flags HTTP/1.1\r\n${head}${type}\r\n{`);
    const [incoming] = (await once(given.app.server, "request")) as [IncomingMessage];
    const brokenOff = new Promise((resolve) => incoming.once("close", resolve));
    socket.resetAndDestroy();
    await brokenOff;
    // The framework handles the abort, and would log it, before it responds to another request.
    expect((await fetch(`${given.url}/api/v1/flags`, { headers: key })).status).toBe(200);
    expect(given.lines().filter((line) => line.level === "warn")).toEqual([]);
  });

  it.each(["7", "", " , ", '*, "7"', '"7', '"7" "8"', 'w/"7"', '"a b"'])(
    "returns 400 for If-Match: %s",
    async (ifMatch) => {
      const headers = { ...key, "if-match": ifMatch };
      const error = await errorOf("DELETE", `/api/v1/flags/${id}`, { headers });
      expect(error).toMatchObject({ code: "VALIDATION_001", status: 400 });
      expect(error.message).toContain("If-Match must be * or entity tags");
    },
  );

  it.each(["*", '"7"', 'W/"7"', '"", "a,b" ,, W/"c"'])("accepts If-Match: %s", async (ifMatch) => {
    const answered = await fetch(`${given.url}/api/v1/flags/${id}`, {
      method: "DELETE",
      headers: { ...key, "if-match": ifMatch },
    });
    expect(answered.status).toBe(204);
  });

  it("returns 413 for a body over the limit, even if it has megabytes", async () => {
    for (const length of [1025, 20_000_000]) {
      const body = Buffer.alloc(length, " ");
      const error = await errorOf("POST", "/api/v1/flags", { headers: json, body });
      expect(error).toMatchObject({ code: "VALIDATION_002", status: 413 });
    }
  });

  it("returns 413 for a chunked body that exceeds the limit", async () => {
    const pieces = new ReadableStream({
      start(controller) {
        for (let piece = 0; piece < 100; piece++) controller.enqueue(Buffer.alloc(1000, " "));
        controller.close();
      },
    });
    const init = { headers: json, body: pieces, duplex: "half" } as RequestInit;
    expect(await errorOf("POST", "/api/v1/flags", init)).toMatchObject({ code: "VALIDATION_002" });
  });

  it.each([
    ["too large", `Content-Length: 9000\r\n\r\n${" ".repeat(9000)}`],
    [
      "too large and in chunks",
      `Transfer-Encoding: chunked\r\n\r\n2328\r\n${" ".repeat(9000)}\r\n0\r\n\r\n`,
    ],
    ["not JSON", "Content-Length: 1\r\n\r\n{"],
  ])("reads a body that is %s to its end, and keeps the connection", async (_what, rest) => {
    const head = "Host: x\r\nAuthorization: Bearer good\r\nContent-Type: application/json\r\n";
    const first = `POST /api/v1/flags HTTP/1.1\r\n${head}${rest}`;
    const second = "GET /second HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n";
    const received = await sendRaw(given.port, first + second);
    expect(received.match(/HTTP\/1\.1 4\d\d/g)).toHaveLength(2);
  });

  it("returns 500 for a bug, and logs it with the request id without revealing it", async () => {
    const headers = { ...key, "x-request-id": "find-me" };
    const error = await errorOf("GET", `/api/v1/flags/${id}`, { headers });
    expect(error).toMatchObject({ code: "SERVER_001", status: 500 });
    expect(error.message).not.toContain("hunter2");
    expect(given.lines()).toContainEqual(
      expect.objectContaining({
        level: "error",
        request_id: "find-me",
        route: "/api/v1/flags/:id",
      }),
    );
  });

  it.each([
    ["unavailable", "3"],
    ["library", "3"],
  ])(
    "returns 503 with Retry-After when a dependency is unavailable (%s)",
    async (kind, seconds) => {
      const headers = { ...key, "x-fail": kind };
      const error = await errorOf("GET", `/api/v1/flags/${id}`, { headers });
      expect(error).toMatchObject({ code: "SERVER_002", status: 503 });
      expect(error.headers.get("retry-after")).toBe(seconds);
      expect(error.message).not.toContain("10.1.2.3");
    },
  );

  it("still serves requests after all of that", async () => {
    expect((await fetch(`${given.url}/api/v1/flags`, { headers: key })).status).toBe(200);
  });
});

describe("given a route that reads", () => {
  it.each([
    ["a success", "/api/v1/flags", key, 200],
    ["an error", "/api/v1/flags?limit=x", key, 400],
    ["an unknown caller", "/api/v1/flags", {}, 401],
    ["an unknown route", "/api/v1/nothing", key, 404],
  ])("responds to HEAD like GET, without the body: %s", async (_what, path, headers, status) => {
    const [get, head] = await Promise.all(
      ["GET", "HEAD"].map((method) => fetch(given.url + path, { method, headers })),
    );
    expect(head?.status).toBe(status);
    // The client closes the connection after HEAD.
    const own = ["connection", "date", "keep-alive", "x-request-id"];
    const others = (answered?: Response) =>
      [...(answered?.headers ?? [])].filter(([name]) => !own.includes(name));
    expect(others(head)).toEqual(others(get));
    expect(await head?.text()).toBe("");
  });

  it("returns 404 for HEAD if the path has no GET", async () => {
    const path = `${given.url}/api/v1/projects/${id}/environments/${id}/keys/${"a".repeat(16)}/rotate`;
    expect((await fetch(path, { method: "HEAD", headers: key })).status).toBe(404);
  });

  it("allows only private caches to store a response, and no cache to store an API key", async () => {
    const read = await fetch(`${given.url}/api/v1/flags`, { headers: key });
    expect(read.headers.get("cache-control")).toBe("private, no-cache");
    expect(read.headers.get("vary")).toBe("Authorization, Cookie, Halyard-Environment");
    const rotated = await errorOf(
      "POST",
      `/api/v1/projects/${id}/environments/${id}/keys/${"a".repeat(16)}/rotate`,
      { headers: key },
    );
    expect(rotated.headers.get("cache-control")).toBe("no-store");
  });

  it.each([
    ["a success", "/api/v1/flags", key],
    ["an unknown route", "/api/v1/nothing", {}],
    ["a path that cannot be decoded", "/api/v1/%ff", {}],
  ])("forbids content sniffing of %s", async (_what, path, headers) => {
    const answered = await fetch(given.url + path, { headers });
    expect(answered.headers.get("x-content-type-options")).toBe("nosniff");
  });

  it("forbids content sniffing of the response to a request that is not HTTP", async () => {
    expect(await sendRaw(given.port, "NONSENSE\r\n\r\n")).toContain(
      "\r\nX-Content-Type-Options: nosniff\r\n",
    );
  });
});

describe("given a route without a body, or with an optional one", () => {
  it("accepts no body, an empty body and an empty object if the route takes no body", async () => {
    const path = `${given.url}/api/v1/flags/${id}`;
    for (const init of [
      { headers: key },
      { headers: json },
      { headers: json, body: "" },
      { headers: json, body: "{}" },
    ]) {
      const answered = await fetch(path, { method: "DELETE", ...init });
      expect(answered.status).toBe(204);
    }
  });

  it.each([
    ['{"to":"018f"}', "/to is not a known field: this request takes no body"],
    ['{"x":1,"y":2}', "/x is not a known field: this request takes no body"],
    ["null", '"" (the whole document) must be empty: this request takes no body'],
    ["[]", '"" (the whole document) must be empty: this request takes no body'],
    ['"x"', '"" (the whole document) must be empty: this request takes no body'],
    ["0", '"" (the whole document) must be empty: this request takes no body'],
  ])("rejects %s if the route takes no body", async (body, message) => {
    const error = await errorOf("DELETE", `/api/v1/flags/${id}`, { headers: json, body });
    expect(error).toMatchObject({ code: "VALIDATION_001", status: 400, message });
  });

  it("treats a missing body as an empty object, and rejects a body that is not an object", async () => {
    const path = `/api/v1/projects/${id}/environments/${id}/keys/${"a".repeat(16)}/rotate`;
    expect(await errorOf("POST", path, { headers: key })).toMatchObject({ message: "{}" });
    expect(await errorOf("POST", path, { headers: json, body: "" })).toMatchObject({
      message: "{}",
    });
    for (const body of ["null", "[]", "5", '"x"'])
      expect(await errorOf("POST", path, { headers: json, body })).toMatchObject({
        code: "VALIDATION_001",
      });
  });

  it("accepts a JSON type with a suffix", async () => {
    const headers = { ...key, "content-type": "application/Merge-Patch+json ; charset=utf-8" };
    const body = '{"key":"a","name":"b"}';
    expect(await errorOf("POST", "/api/v1/flags", { headers, body })).toMatchObject({
      code: "CONFLICT_001",
    });
  });
});
