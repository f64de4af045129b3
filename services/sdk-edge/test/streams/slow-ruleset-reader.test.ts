import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { setImmediate as nextTurn } from "node:timers/promises";
import { maxUnsentBytes } from "@halyard/http";
import { eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, deletedFlag, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/**
 * A client stops reading its stream of rules. The kernel's buffers fill first, then the edge's. The rules of a flag are
 * so large that a few dozen changes fill the buffers.
 */
const server = apiKey({ key_kind: "server" });
const ruleBytes = 200_000;
const maxEventBytes = ruleBytes + 1_000;
let edge: EdgeServer;
let reader: Socket;
let received: string;
/** The edge's end of the connection. */
let connection: Socket;
let version: number;

beforeEach(async () => {
  version = 1;
  received = "";
  edge = await startEdgeServer([server.entry, largeFlag(), small(1), small(2)]);
  const connected = once(edge.edge.app.server, "connection") as Promise<[Socket]>;
  const { hostname, port } = new URL(edge.url);
  reader = connect(Number(port), hostname).setEncoding("utf8");
  reader.on("data", (text: string) => {
    received += text;
  });
  reader.write(
    `GET /api/v1/sdk/ruleset/stream?format=2 HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer ${server.text}\r\n\r\n`,
  );
  [connection] = await connected;
  await eventually(() => received.includes("event: heartbeat"));
  reader.pause();
});
afterEach(async () => {
  reader.destroy();
  await edge.stop();
});

describe("given a client that does not read its stream of rules", () => {
  it("uses no more memory than the bound and one event, and then receives what it missed", async () => {
    await changeUntilBehind();
    await edge.feed(deletedFlag(9, id("flag", 2)));
    await edge.feed(small(2, 7));
    for (let more = 0; more < 10; more += 1) await changeLargeFlag();
    expect(connection.writableLength).toBeLessThan(maxUnsentBytes + maxEventBytes);
    const sent = await sentEvents();
    reader.resume();
    await eventually(() => received.includes('"removed":["small-1"]}\n\n'));
    const last = received.trimEnd().split("\ndata: ").at(-1) ?? "";
    const { flags, full } = JSON.parse(last);
    expect(full).toBeUndefined();
    expect(Object.keys(flags).sort()).toEqual(["large", "small-2"]);
    expect(flags.large.version).toBe(version);
    expect(flags["small-2"].version).toBe(7);
    expect(await sentEvents()).toBe(sent + 1);
  });
});

function largeFlag() {
  const value = Array.from({ length: 20 }, () => "x".repeat(ruleBytes / 20));
  return flagEntry({
    ...{ key: "large", version },
    targeting_rules: [{ conditions: [{ attribute: "id", operator: "in", value }] }],
  });
}

function small(number: number, flagVersion = 1) {
  return flagEntry({
    ...{ flag_id: id("flag", number + 1), key: `small-${number}`, version: flagVersion },
  });
}

async function changeLargeFlag(): Promise<void> {
  version += 1;
  await edge.feed(largeFlag());
}

/**
 * Changes the large flag until the kernel's buffers are full and the edge holds more than its bound. An event that the
 * kernel accepts is unsent only for a few turns of the event loop.
 */
async function changeUntilBehind(): Promise<void> {
  do {
    await changeLargeFlag();
    for (let turn = 0; turn < 20; turn += 1) await nextTurn();
  } while (connection.writableLength <= maxUnsentBytes);
}

const sentEvents = () => edge.metric('stream_events_sent_total{event="ruleset"');
