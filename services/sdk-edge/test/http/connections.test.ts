import { connect, type Socket } from "node:net";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, revokedKey } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/** Checks the bytes on a connection, which HTTP clients would hide. */
const key = apiKey();
let edge: EdgeServer;
let version = 1;
const sockets: Socket[] = [];

beforeAll(async () => {
  edge = await startEdgeServer([key.entry, flagEntry({ enabled: false })]);
});
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy();
});
afterAll(() => edge.stop());

describe("given pipelined requests", () => {
  it("answers them in order on one connection", async () => {
    const connection = open();
    connection.send(get("flags") + get("nothing") + get("flags"));
    await eventually(() => connection.text().match(/HTTP\/1\.1 \d+/g)?.length === 3);
    expect(connection.text().match(/HTTP\/1\.1 \d+/g)).toEqual([
      "HTTP/1.1 200",
      "HTTP/1.1 404",
      "HTTP/1.1 200",
    ]);
  });

  it("streams after another response, and keeps streaming", async () => {
    const connection = open();
    connection.send(get("flags") + get("stream"));
    await eventually(() => connection.text().includes("event: heartbeat"));
    for (const expected of ["true", "false"]) {
      version += 1;
      await edge.feed(flagEntry({ enabled: expected === "true", version }));
      await eventually(() => lastFlags(connection.text()), {
        until: (flags) => flags === `{"flags":{"checkout":${expected}}}`,
      });
    }
  });

  /** A heartbeat can follow the event. */
  const lastFlags = (text: string) => text.match(/(?<=data: )\{"flags".*(?=\n\n)/g)?.at(-1);

  it("sends no other response on the connection of a stream", async () => {
    const connection = open();
    connection.send(get("stream") + get("flags"));
    await eventually(() => connection.text().includes("event: heartbeat"));
    expect(connection.text().match(/HTTP\/1\.1 \d+/g)).toHaveLength(1);
  });
});

describe("given a stream", () => {
  it("sends no chunked encoding and ends with the connection, even for HTTP/1.0", async () => {
    const connection = open();
    connection.send(get("stream").replace("HTTP/1.1", "HTTP/1.0"));
    await eventually(() => connection.text().includes("event: heartbeat"));
    expect(connection.text().toLowerCase()).not.toContain("transfer-encoding");
    expect(connection.text()).toContain("\r\n\r\nretry: 3750\n\nevent: flags\n");
  });

  it("closes the connection when its key is revoked", async () => {
    const ending = apiKey();
    await edge.feed(ending.entry);
    const connection = open();
    connection.send(get("stream", ending.text));
    await eventually(() => connection.text().includes("event: heartbeat"));
    await edge.feed(revokedKey(ending.keyId));
    await connection.closed;
  });
});

describe("given a body that arrives slowly", () => {
  it("is rejected if its key is revoked meanwhile", async () => {
    const ending = apiKey();
    await edge.feed(ending.entry);
    const connection = open();
    connection.send(
      `POST /api/v1/sdk/flags HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer ${ending.text}\r\n` +
        "Content-Type: application/json\r\nContent-Length: 2\r\n\r\n{",
    );
    await edge.feed(revokedKey(ending.keyId));
    connection.send("}");
    await eventually(() => connection.text().includes("AUTH_001"));
    expect(connection.text()).toMatch(/^HTTP\/1\.1 401 /);
  });
});

describe("given a request target that is not a plain path", () => {
  it.each([
    ["an absolute one", "http://edge:80/api/v1/sdk/flags"],
    ["an absolute one in uppercase", "HTTP://EDGE/api/v1/sdk/flags?user_id=u1"],
    ["one with repeated slashes at the start", "//api/v1/sdk/flags"],
    ["an absolute one with repeated slashes", "http://edge///api/v1/sdk/flags"],
  ])("answers %s like the path", async (_form, target) => {
    const connection = open();
    connection.send(get("flags").replace("/api/v1/sdk/flags", target));
    await eventually(() => connection.text().includes('{"flags":'));
    expect(connection.text()).toMatch(/^HTTP\/1\.1 200 /);
  });

  it.each([
    "http://edge",
    "http://edge?key=1",
    "/api//v1/sdk/flags",
    "/api/v1/sdk//flags",
    "ftp://x",
  ])("answers 404 to %s", async (target) => {
    const connection = open();
    connection.send(get("flags").replace("/api/v1/sdk/flags", target));
    await eventually(() => connection.text().includes("NOT_FOUND_001"));
    expect(connection.text()).toMatch(/^HTTP\/1\.1 404 /);
  });
});

describe("given a request with an invalid header", () => {
  it.each([
    ["is missing", ""],
    ["is repeated", "Host: edge\r\nHost: other\r\n"],
  ])("is rejected in the API's error format if Host %s", async (_what, host) => {
    const connection = open();
    connection.send(get("flags").replace("Host: edge\r\n", host));
    await eventually(() => connection.text().includes("VALIDATION_001"));
    expect(connection.text()).toMatch(/^HTTP\/1\.1 400 /);
  });
});

function get(name: string, text = key.text): string {
  return `GET /api/v1/sdk/${name} HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer ${text}\r\n\r\n`;
}

function open() {
  const { hostname, port } = new URL(edge.url);
  const socket = connect(Number(port), hostname);
  sockets.push(socket);
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    received += text;
  });
  return {
    send: (text: string) => void socket.write(text),
    text: () => received,
    closed: new Promise<void>((resolve) => socket.once("close", () => resolve())),
  };
}
