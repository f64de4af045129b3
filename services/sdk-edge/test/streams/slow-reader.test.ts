import { connect, type Socket } from "node:net";
import { maxUnsentBytes } from "@halyard/http";
import { eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/**
 * A client stops reading. The kernel's buffers fill first, then the edge's. Each change affects so many flags that a
 * few dozen changes fill the buffers.
 */
const key = apiKey();
const flagCount = 2_000;
const afterAllOthers = 1_000_000;
let edge: EdgeServer;
let reader: Reader;
/** The edge's end of the connection. */
let connection: Socket | undefined;
let version = 1;

beforeEach(async () => {
  version = 1;
  edge = await startEdgeServer([key.entry, ...allFlags()]);
  edge.edge.app.server.once("connection", (socket) => {
    connection = socket;
  });
  reader = await openReader();
  await eventually(() => reader.text().includes("event: heartbeat"));
  reader.socket.pause();
});
afterEach(async () => {
  reader.socket.destroy();
  await edge.stop();
});

describe("given a client that does not read", () => {
  it("uses no more memory than the bound and one event, regardless of the number of changes", async () => {
    await changeUntilBehind();
    for (let more = 0; more < 25; more += 1) await changeAllFlags();
    expect(unsentBytes()).toBeLessThan(maxUnsentBytes + maxEventBytes);
  });

  it("receives one event with all values when it reads again", async () => {
    await changeUntilBehind();
    await edge.feed(deletedFlag(afterAllOthers, id("flag", 0)));
    for (let more = 0; more < 3; more += 1) await changeAllFlags();
    const sent = await sentEvents();
    reader.socket.resume();
    await eventually(async () => (await sentEvents()) > sent && unsentBytes() === 0);
    await eventually(() => lastFlags(reader.text())?.removed !== undefined);
    const last = lastFlags(reader.text());
    expect(Object.keys(last?.flags ?? {})).toHaveLength(flagCount - 1);
    expect(new Set(Object.values(last?.flags ?? {}))).toEqual(new Set([version % 2 === 0]));
    expect(last?.removed).toEqual([keyOfFlag(0)]);
    expect(await sentEvents()).toBe(sent + 1);
  });

  it("is disconnected if it does not catch up", async () => {
    const closed = new Promise<void>((resolve) => reader.socket.once("close", () => resolve()));
    reader.socket.on("error", () => undefined);
    await changeUntilBehind();
    edge.passTime(31_000);
    await eventually(
      async () => (await edge.metric('streams_closed_total{cause="slow_reader"')) === 1,
    );
    reader.socket.resume();
    await closed;
    edge.passTime(-31_000);
  });
});

type Reader = { socket: Socket; text: () => string };

async function openReader(): Promise<Reader> {
  const { hostname, port } = new URL(edge.url);
  const socket = connect(Number(port), hostname);
  const chunks: string[] = [];
  socket.setEncoding("utf8");
  socket.on("data", (text: string) => chunks.push(text));
  socket.write(
    `GET /api/v1/sdk/stream HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer ${key.text}\r\n\r\n`,
  );
  return { socket, text: () => chunks.join("") };
}

function keyOfFlag(number: number): string {
  return `a-flag-with-a-rather-long-key-${number}`;
}

function allFlags() {
  return Array.from({ length: flagCount }, (_, number) =>
    flagEntry({
      flag_id: id("flag", number),
      key: keyOfFlag(number),
      enabled: version % 2 === 0,
      version,
    }),
  );
}

async function changeAllFlags(): Promise<void> {
  version += 1;
  await edge.feed(...allFlags());
}

const maxEventBytes = flagCount * (keyOfFlag(flagCount).length + 10) + 200;

/** Changes flags until the edge sends no further events to the client. */
async function changeUntilBehind(): Promise<void> {
  for (let sent = -1; sent !== (await sentEvents()); ) {
    sent = await sentEvents();
    await changeAllFlags();
  }
}

const sentEvents = () => edge.metric('stream_events_sent_total{event="flags"');

/** Returns the bytes that Node buffers for the edge's only client. */
const unsentBytes = () => connection?.writableLength ?? 0;

function lastFlags(
  text: string,
): { flags: Record<string, boolean>; removed?: string[] } | undefined {
  const lines = text.split("\n").filter((line) => line.startsWith('data: {"flags"'));
  const last = lines.at(-1);
  if (last === undefined || !text.includes(`${last}\n\n`)) return undefined;
  return JSON.parse(last.slice("data: ".length));
}
