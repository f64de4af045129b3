import { ServerResponse } from "node:http";
import { connect } from "node:net";
import { eventually } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { Usage } from "../../src/usage/usage.ts";
import { apiKey, flagEntry } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";
import { tokenSecret } from "./ofrep/asking.ts";

/** The framework does not send errors of hijacked replies. Without a guard these requests would never end. */
const key = apiKey();
const routes = [
  ["all flags", "GET", "/api/v1/sdk/flags", ""],
  ["one flag", "GET", "/api/v1/sdk/evaluate?key=checkout", ""],
  ["all flags with a body", "POST", "/api/v1/sdk/flags", '{"id":"u"}'],
  ["all flags by OFREP", "POST", "/ofrep/v1/evaluate/flags", '{"context":{}}'],
  ["one flag by OFREP", "POST", "/ofrep/v1/evaluate/flags/checkout", '{"context":{}}'],
] as const;
let edge: EdgeServer;
let usage: Usage;

beforeAll(async () => {
  edge = await startEdgeServer([key.entry, flagEntry({ enabled: true })], {
    countsUsage: true,
    streamTokenSecret: tokenSecret,
  });
  usage = edge.counting?.usage as Usage;
});
afterEach(() => void jest.restoreAllMocks());
afterAll(() => edge.stop());

const fault = (): never => {
  throw new Error("a fault");
};

describe.each(routes)("given a fault in the response with %s", (what, method, path, body) => {
  it("ends the response with 500 before the head is sent", async () => {
    const counts = what.startsWith("one") ? "answeredOne" : "answeredAll";
    jest.spyOn(usage, counts).mockImplementationOnce(fault);
    const received = await ask(method, path, body);
    expect(received).toMatch(/^HTTP\/1\.1 500 /);
    expect(idsIn(edge.log())).toContain(idOf(received));
    await expectNextToPass();
  });

  it("closes the connection after the head is sent", async () => {
    jest.spyOn(ServerResponse.prototype, "end").mockImplementationOnce(fault);
    expect(await ask(method, path, body)).toBe("");
    await expectNextToPass();
  });
});

describe("given a fault while a stream opens", () => {
  it("ends the response with 500 before the head is sent", async () => {
    jest.spyOn(usage, "count").mockImplementationOnce(fault);
    expect(await ask("GET", "/api/v1/sdk/stream")).toMatch(/^HTTP\/1\.1 500 /);
    await expectNextToPass();
  });

  it("closes the connection after the head is sent", async () => {
    jest.spyOn(usage, "answeredAll").mockImplementationOnce(fault);
    const received = await ask("GET", "/api/v1/sdk/stream");
    expect(received).not.toMatch(/^HTTP\/1\.1 500 /);
    await eventually(async () => (await edge.metric("streams_open{")) === 0);
    await expectNextToPass();
  });
});

it("logs each fault with its endpoint", () => {
  expect(edge.log()).toContain('"endpoint":"ofrep_flags"');
  expect(edge.log()).toContain('"endpoint":"stream"');
});

it("logs the id of each error response, and of no other", async () => {
  for (const path of ["/api/v1/sdk/evaluate?key=none", "/ofrep/v1/none", "/api/v1/sdk/none"]) {
    const rejected = await ask("GET", path);
    expect(rejected).toMatch(/^HTTP\/1\.1 404 /);
    await eventually(() => idsIn(edge.log()).includes(idOf(rejected)));
  }
  expect(idsIn(edge.log())).not.toContain(idOf(await ask("GET", "/api/v1/sdk/flags")));
});

function idOf(received: string): string {
  return /^X-Request-Id: (\S+)\r$/im.exec(received)?.[1] ?? "none";
}

function idsIn(log: string): unknown[] {
  return log
    .split("\n")
    .filter((line) => line !== "")
    .map((line) => JSON.parse(line).request_id);
}

/** Sends a request and returns everything received until the edge closes the connection. */
async function ask(method: string, path: string, body = ""): Promise<string> {
  const { hostname, port } = new URL(edge.url);
  const socket = connect(Number(port), hostname);
  const closed = new Promise<void>((resolve) => socket.once("close", () => resolve()));
  let received = "";
  socket.setEncoding("utf8").on("data", (text: string) => {
    received += text;
  });
  const head = [
    `${method} ${path} HTTP/1.1`,
    "Host: edge",
    "Connection: close",
    `Authorization: Bearer ${key.text}`,
    ...(body === "" ? [] : ["Content-Type: application/json", `Content-Length: ${body.length}`]),
  ];
  socket.write(`${head.join("\r\n")}\r\n\r\n${body}`);
  await closed;
  return received;
}

async function expectNextToPass(): Promise<void> {
  expect(await ask("GET", "/api/v1/sdk/flags")).toMatch(/^HTTP\/1\.1 200 /);
}
