import { connect } from "node:net";
import { afterAll, describe, expect, it } from "@jest/globals";
import { type ErrorAnswer, fourFields, givenApp, sendRaw } from "./given-app.ts";

/** Error responses to requests that Node's parser rejects, or to which Node would respond itself. */

const given = await givenApp((app) => {
  app.get("/slow-stream", (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200, { "content-type": "text/plain" });
    reply.raw.write("begun");
  });
  app.post("/", (_request, reply) => reply.send("fine"));
});
afterAll(() => given.close());

async function errorOf(bytes: string | Buffer) {
  const received = await sendRaw(given.port, bytes);
  const [head = "", body = ""] = received.split("\r\n\r\n");
  const { error } = JSON.parse(body) as ErrorAnswer;
  expect(Object.keys(error).sort()).toEqual(fourFields);
  expect(head).toContain(`HTTP/1.1 ${error.status} `);
  expect(head.toLowerCase()).toContain("content-type: application/json; charset=utf-8");
  expect(head.toLowerCase()).toContain(`content-length: ${Buffer.byteLength(body)}`);
  expect(head.toLowerCase()).toContain("connection: close");
  expect(head).toMatch(/^X-Request-Id: \S+$/im);
  return error;
}

const host = "Host: localhost\r\n";
const close = "Connection: close\r\n";

describe("given bytes that are not a request", () => {
  it.each([
    ["no HTTP at all", "HELLO\r\n\r\n"],
    ["a TLS handshake", Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03])],
    ["an unknown method", `FLY / HTTP/1.1\r\n${host}\r\n`],
    ["a header without a name", `GET / HTTP/1.1\r\n${host}: x\r\n\r\n`],
    ["a space before a header's colon", `GET / HTTP/1.1\r\n${host}A : x\r\n\r\n`],
    ["a control character in a header", `GET / HTTP/1.1\r\n${host}A: \u0001\r\n\r\n`],
    ["two lengths", `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nContent-Length: 2\r\n\r\nab`],
    [
      "a length and chunks",
      `POST / HTTP/1.1\r\n${host}Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["a negative length", `POST / HTTP/1.1\r\n${host}Content-Length: -1\r\n\r\n`],
    [
      "a chunk without a size",
      `POST / HTTP/1.1\r\n${host}Content-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    ],
    [
      "a transfer coding besides chunked",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    [
      "chunks in two headers",
      `POST / HTTP/1.1\r\n${host}Transfer-Encoding: gzip\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["no Host", `GET / HTTP/1.1\r\n${close}\r\n`],
    ["two Host headers", `GET / HTTP/1.1\r\n${host}${close}hOST: other\r\n\r\n`],
    ["two equal Host headers on HTTP/1.0", `GET / HTTP/1.0\r\n${host}${host}\r\n`],
    ["an unknown expectation", `GET / HTTP/1.1\r\n${host}${close}Expect: miracles\r\n\r\n`],
  ])("returns 400 for %s", async (_what, bytes) => {
    expect(await errorOf(bytes)).toMatchObject({ code: "VALIDATION_001", status: 400 });
  });

  it("returns 413 for headers over the limit", async () => {
    const bytes = `GET / HTTP/1.1\r\n${host}X-User-Context: ${"a".repeat(40_000)}\r\n\r\n`;
    expect(await errorOf(bytes)).toMatchObject({ code: "VALIDATION_002", status: 413 });
  });

  it("returns 413 for megabytes of headers while they are still sent", async () => {
    const bytes = `GET / HTTP/1.1\r\n${host}X-User-Context: ${"a".repeat(4_000_000)}\r\n\r\n`;
    expect(await errorOf(bytes)).toMatchObject({ code: "VALIDATION_002", status: 413 });
  });

  it("accepts headers of 30 KiB", async () => {
    const headers = { "x-user-context": "a".repeat(30 * 1024) };
    expect((await fetch(`${given.url}/`, { method: "POST", headers })).status).toBe(200);
  });

  it("does not act as a proxy", async () => {
    const error = await errorOf(`CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`);
    expect(error).toMatchObject({ code: "NOT_FOUND_001", status: 404 });
  });

  it("never writes an error into the middle of a response", async () => {
    const bytes = `GET /slow-stream HTTP/1.1\r\n${host}\r\nGARBAGE\r\n\r\n`;
    const received = await sendRaw(given.port, bytes);
    expect(received).not.toContain("VALIDATION_001");
  });

  it("still serves requests after all of that", async () => {
    expect((await fetch(`${given.url}/`, { method: "POST" })).status).toBe(200);
  });
});

describe("given a malformed request below /ofrep/v1/", () => {
  const flag = "//ofrep/v1/evaluate/flags/a";

  it.each([
    [
      "headers over the limit",
      413,
      `POST ${flag} HTTP/1.1\r\n${host}A: ${"a".repeat(2_000)}\r\n\r\n`,
    ],
    ["a control character in a header", 400, `GET ${flag} HTTP/1.1\r\n${host}A: \u0001\r\n\r\n`],
    [
      "an unknown expectation",
      400,
      `POST ${flag} HTTP/1.1\r\n${host}${close}Expect: 200-x\r\n\r\n`,
    ],
    ["no Host", 400, `POST ${flag} HTTP/1.1\r\n${close}\r\n`],
    [
      "a transfer coding besides chunked",
      400,
      `POST ${flag} HTTP/1.1\r\n${host}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n`,
    ],
    ["an undecodable path", 404, `POST ${flag}%zz HTTP/1.1\r\n${host}${close}\r\n`],
  ])(
    "returns an error in OFREP's shape, to pages of any origin, for %s",
    async (_what, status, bytes) => {
      const own = await givenApp(() => undefined, { maxHeaderBytes: 1_024 });
      const [head = "", body = ""] = (await sendRaw(own.port, bytes)).split("\r\n\r\n");
      await own.close();
      expect(head).toContain(`HTTP/1.1 ${status} `);
      expect(head.match(/^access-control-allow-origin: \*\r?$/gim)).toHaveLength(1);
      expect(head).toMatch(/^access-control-expose-headers: .*X-Request-Id\r?$/im);
      expect(JSON.parse(body)).toMatchObject({
        key: expect.stringMatching(/^a/),
        errorCode: expect.any(String),
      });
    },
  );

  it("does not let pages of other origins read the same errors of management", async () => {
    const own = await givenApp(() => undefined, { maxHeaderBytes: 1_024 });
    for (const bytes of [
      `GET /api/v1/flags HTTP/1.1\r\n${host}A: ${"a".repeat(2_000)}\r\n\r\n`,
      `GET /api/v1/flags/%zz HTTP/1.1\r\n${host}${close}\r\n`,
      `GET /api/v1/flags HTTP/1.1\r\n${host}${close}Expect: 200-x\r\n\r\n`,
    ])
      expect((await sendRaw(own.port, bytes)).toLowerCase()).not.toContain("access-control");
    await own.close();
  });
});

describe("given a client that never completes its headers", () => {
  it("returns 400 after the time-out for headers", async () => {
    const own = await givenApp(() => undefined, { headersTimeoutMs: 100 });
    expect(await sendRaw(own.port, `GET / HTTP/1.1\r\n${host}`)).toContain("HTTP/1.1 400 ");
    await own.close();
  });

  it("closes a connection on which nothing was sent without a response", async () => {
    const own = await givenApp(() => undefined, { headersTimeoutMs: 100 });
    expect(await sendRaw(own.port, "")).toBe("");
    await own.close();
  });

  it("does not count the time during which the server does not read", async () => {
    const held = Promise.withResolvers<() => void>();
    const own = await givenApp(
      (app) => {
        app.get("/held", (request, reply) => {
          reply.hijack();
          const { socket } = request.raw;
          setImmediate(() => {
            socket.pause();
            held.resolve(() => {
              socket.resume();
              reply.raw.end("held");
            });
          });
        });
        app.get("/next", (_request, reply) => reply.send("next"));
      },
      { headersTimeoutMs: 100 },
    );
    const client = connect(own.port, "127.0.0.1");
    client.write(`GET /held HTTP/1.1\r\n${host}\r\nGET /next HTTP/1.1\r\n`);
    const release = await held.promise;
    // Later connections have timed out by then.
    for (let time = 0; time < 2; time++) await sendRaw(own.port, "");
    client.end(`${host}${close}\r\n`);
    release();
    let text = "";
    for await (const chunk of client) text += chunk;
    expect(text.match(/HTTP\/1\.1 \d+/g)).toEqual(["HTTP/1.1 200", "HTTP/1.1 200"]);
    await own.close();
  });

  it("has a time-out for headers of less than 30 seconds", () => {
    expect(given.app.server.headersTimeout * 1.25).toBeLessThan(30_000);
  });
});

describe("given an idle connection", () => {
  it("keeps it open for longer than common load balancers do", () => {
    expect(given.app.server.keepAliveTimeout).toBeGreaterThan(60_000);
  });
});
