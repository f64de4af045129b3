import { Agent, request } from "node:http";
import { connect } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import { replaceAudienceList } from "@halyard/contracts";
import { afterEach, describe, expect, it } from "@jest/globals";
import { answer, createProblem, registerRoute } from "../src/index.ts";
import { type GivenApp, givenApp, sendRaw } from "./given-app.ts";

/** The body of a route with `streamedBody`. */
let given: GivenApp;
afterEach(() => given.close());

const audience = { key: "beta", name: "Beta", description: "", match: [], list: null };
const resource = {
  ...{ ...audience, version: 1, used_by: [] },
  created_at: "2027-01-31T09:00:00.000Z",
  updated_at: "2027-01-31T09:00:00.000Z",
};

/** Starts a route that receives the sizes of the parts of a body, up to a number of bytes. */
const start = (received: number[], upTo = Number.POSITIVE_INFINITY) =>
  givenApp((app) =>
    registerRoute(app, replaceAudienceList, {
      authenticate: () => ({ name: "caller" }),
      handle: async ({ request }) => {
        let bytes = 0;
        for await (const part of request.stream?.iterator({ destroyOnReturn: false }) ?? []) {
          received.push((part as Buffer).length);
          bytes += (part as Buffer).length;
          if (bytes > upTo) return createProblem("VALIDATION_002", "The list is too large.");
        }
        return answer.ok(resource);
      },
    }),
  );

const send = (body: string, type = "text/csv") =>
  fetch(`${given.url}/api/v1/audiences/beta/list`, {
    method: "PUT",
    headers: { "content-type": type },
    body,
  });

/** Sends a body over the connections of an agent. Returns the status. */
function sendBy(agent: Agent, body: string): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const url = `${given.url}/api/v1/audiences/beta/list`;
    const sent = request(url, { agent, method: "PUT", headers: { "content-type": "text/csv" } });
    sent.once("error", reject);
    sent.once("response", (response) => {
      response.resume().once("end", () => resolve(response.statusCode));
    });
    sent.end(body);
  });
}

describe("a streamed body", () => {
  it("may be larger than the limit of other bodies, and arrives in parts", async () => {
    const received: number[] = [];
    given = await start(received);
    expect((await send("x".repeat(1_000_000), "text/csv; charset=utf-8")).status).toBe(200);
    expect(received.length).toBeGreaterThan(1);
    expect(received.reduce((sum, bytes) => sum + bytes)).toBe(1_000_000);
  });

  it.each([
    ["is absent", ""],
    ["is absent and has a type", "content-type: text/csv\r\n"],
    ["has no bytes", "content-type: text/csv\r\ncontent-length: 0\r\n"],
  ])("is rejected if it %s", async (_, headers) => {
    given = await start([]);
    const begin = "PUT /api/v1/audiences/beta/list HTTP/1.1\r\nhost: x\r\nconnection: close\r\n";
    const answer = await sendRaw(given.port, `${begin}${headers}\r\n`);
    expect(answer).toMatch(/^HTTP\/1.1 400 /);
    expect(answer).toContain("The body must not be empty.");
  });

  it("is discarded after an early response, so that the connection can be used again", async () => {
    given = await start([], 1_000);
    const agent = new Agent({ keepAlive: true, maxSockets: 1 });
    expect(await sendBy(agent, "x".repeat(3_000_000))).toBe(413);
    expect(await sendBy(agent, "x")).toBe(200);
    agent.destroy();
  });

  it.each(["application/json", "text/plain", "multipart/form-data; boundary=x"])(
    "is rejected with the type %s",
    async (type) => {
      given = await start([]);
      const response = await send("[]", type);
      expect(response.status).toBe(415);
      expect(await response.text()).toContain("text/csv or application/x-ndjson");
    },
  );
});

describe("given a server with a longer time for streamed bodies", () => {
  const startWith = (streamTimeoutMs: number, isAuthentic: boolean) =>
    givenApp(
      (app) =>
        registerRoute(app, replaceAudienceList, {
          authenticate: () =>
            isAuthentic ? { name: "caller" } : createProblem("AUTH_001", "The key is not valid."),
          handle: async ({ request }) => {
            for await (const _ of request.stream ?? []);
            return answer.ok(resource);
          },
        }),
      { bodyTimeoutMs: 50, streamTimeoutMs },
    );
  const head = (path: string, type: string) =>
    `PUT ${path} HTTP/1.1\r\nhost: x\r\ncontent-type: ${type}\r\ncontent-length: 9\r\n\r\nx`;
  const list = "/api/v1/audiences/beta/list";

  it.each([
    ["a request without a valid key", list, "text/csv", 401],
    ["a path without a route", "/nowhere", "text/csv", 404],
  ])(
    "closes the connection of %s after the time of other bodies",
    async (_, path, type, status) => {
      given = await startWith(600_000, false);
      expect(await sendRaw(given.port, head(path, type))).toMatch(`HTTP/1.1 ${status} `);
    },
  );

  it("gives an admitted stream the longer time", async () => {
    given = await startWith(600_000, true);
    const socket = connect(given.port, "127.0.0.1");
    socket.write(head(list, "text/csv"));
    await delay(150);
    socket.end("12345678");
    expect(Buffer.concat(await socket.toArray()).toString()).toMatch("HTTP/1.1 200 ");
  });
});
