import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type ErrorAnswer, fourFields, type GivenApp, givenApp, sendRaw } from "./given-app.ts";

/** What Node's parser refuses, or would answer by itself, is answered in the one error shape too. */
let given: GivenApp;

beforeAll(async () => {
  given = await givenApp((app) => {
    app.get("/slow-stream", (_request, reply) => {
      reply.hijack();
      reply.raw.writeHead(200, { "content-type": "text/plain" });
      reply.raw.write("begun");
    });
    app.post("/", (_request, reply) => reply.send("fine"));
  });
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
    ["a TLS greeting", Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x01, 0xfc, 0x03])],
    ["a method of its own", `FLY / HTTP/1.1\r\n${host}\r\n`],
    ["a header without a name", `GET / HTTP/1.1\r\n${host}: x\r\n\r\n`],
    ["a blank before a header's colon", `GET / HTTP/1.1\r\n${host}A : x\r\n\r\n`],
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
    ["no Host", `GET / HTTP/1.1\r\n${close}\r\n`],
    [
      "an expectation that nobody knows",
      `GET / HTTP/1.1\r\n${host}${close}Expect: miracles\r\n\r\n`,
    ],
  ])("answers 400 to %s", async (_what, bytes) => {
    expect(await errorOf(bytes)).toMatchObject({ code: "VALIDATION_001", status: 400 });
  });

  it("answers 413 to headers over the limit", async () => {
    const bytes = `GET / HTTP/1.1\r\n${host}X-User-Context: ${"a".repeat(40_000)}\r\n\r\n`;
    expect(await errorOf(bytes)).toMatchObject({ code: "VALIDATION_002", status: 413 });
  });

  it("answers 413 to headers of megabytes that are still being sent", async () => {
    const bytes = `GET / HTTP/1.1\r\n${host}X-User-Context: ${"a".repeat(4_000_000)}\r\n\r\n`;
    expect(await errorOf(bytes)).toMatchObject({ code: "VALIDATION_002", status: 413 });
  });

  it("takes headers of 30 KiB", async () => {
    const headers = { "x-user-context": "a".repeat(30 * 1024) };
    expect((await fetch(`${given.url}/`, { method: "POST", headers })).status).toBe(200);
  });

  it("is no proxy", async () => {
    const error = await errorOf(`CONNECT example.com:443 HTTP/1.1\r\n${host}\r\n`);
    expect(error).toMatchObject({ code: "NOT_FOUND_001", status: 404 });
  });

  it("never writes an error into the middle of an answer", async () => {
    const bytes = `GET /slow-stream HTTP/1.1\r\n${host}\r\nGARBAGE\r\n\r\n`;
    const received = await sendRaw(given.port, bytes);
    expect(received).not.toContain("VALIDATION_001");
  });

  it("goes on serving after all of that", async () => {
    expect((await fetch(`${given.url}/`, { method: "POST" })).status).toBe(200);
  });
});
