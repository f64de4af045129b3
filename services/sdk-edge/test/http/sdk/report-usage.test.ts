import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import {
  checkEvaluationsReported,
  type EvaluationsReported,
  evaluationsStream,
} from "@halyard/contracts";
import { ensureEvaluations } from "@halyard/jetstream";
import { createMetrics } from "@halyard/service";
import {
  call,
  eventually,
  natsLogin,
  natsServerBinary,
  type RestartableNats,
  startRestartableNats,
} from "@halyard/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { type EdgeConnection, openNatsConnection } from "../../../src/nats-connection.ts";
import { createPublishReport } from "../../../src/usage/publish-report.ts";
import { apiKey, flagEntry, id, organizationWith } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

/** Reports of applications on an edge with a real broker. */
const server = apiKey({ key_kind: "server" });
const otherServer = apiKey({ key_kind: "server" });
const client = apiKey();
const entries = [
  // The month is used up.
  ...organizationWith({ requests_per_month: 0 }),
  ...[server, otherServer, client].map(({ entry }) => entry),
  flagEntry({ flag_id: id("flag", 1), key: "alpha", enabled: true }),
  flagEntry({
    ...{ flag_id: id("flag", 3), key: "color", value_type: "string" },
    ...{ variations: [{ key: "blue", json: '"#00f"' }], serve: { variation: "blue" } },
    off_variation: null,
  }),
  flagEntry({ flag_id: id("flag", 2), key: "elsewhere", environment_id: id("env", 2) }),
];

let nats: RestartableNats;
let operator: NatsConnection;
let manager: JetStreamManager;
let own: EdgeConnection;
let edge: EdgeServer;

beforeAll(async () => {
  nats = await startRestartableNats(await natsServerBinary());
  const reconnecting = { maxReconnectAttempts: -1, reconnectTimeWait: 50 };
  operator = await connect({ servers: nats.url, ...reconnecting });
  manager = await jetstreamManager(operator, { timeout: 3_000 });
  const logger = pino({ level: "silent" });
  own = openNatsConnection({
    nats: natsLogin("sdk-edge", nats.url),
    metrics: createMetrics({ service: "sdk-edge" }),
    logger,
  });
  await own.ready;
  const publishReport = createPublishReport({ connection: own.ready, logger });
  edge = await startEdgeServer(entries, { countsUsage: true, publishReport });
});
beforeEach(async () => {
  await eventually(() => ensureEvaluations(manager, 1));
  await manager.streams.purge(evaluationsStream.name);
  edge.counting?.take();
});
afterAll(async () => {
  await edge?.stop();
  await own?.close();
  await operator?.close();
  await nats?.stop();
});

const ended = new Date(Date.now() - 1_000).toISOString();
const period = { start: new Date(Date.now() - 61_000).toISOString(), end: ended };
const report = { period, flags: { alpha: { true: 12, false: 3 } } };

function send(
  body: unknown,
  { key = server.text, idempotencyKey }: { key?: string; idempotencyKey?: string } = {},
) {
  const headers = idempotencyKey === undefined ? {} : { "idempotency-key": idempotencyKey };
  return call(`${edge.url}/api/v1/sdk/usage`, { method: "POST", key, body, headers });
}

/** Returns the stored messages, oldest first. */
async function stored(): Promise<EvaluationsReported[]> {
  const { state } = await manager.streams.info(evaluationsStream.name);
  const read: EvaluationsReported[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq += 1) {
    const message = await manager.streams.getMessage(evaluationsStream.name, { seq });
    const checked = checkEvaluationsReported(message?.json());
    if (!checked.ok) throw new Error(checked.problem);
    read.push(checked.value);
  }
  return read;
}

describe("given a report with a server key", () => {
  it("answers 202 when the broker has stored the evaluations by flag id", async () => {
    const { status, body } = await send(report);
    expect({ status, body }).toEqual({ status: 202, body: { accepted: true } });
    expect(await stored()).toEqual([
      {
        report_id: expect.any(String),
        environment_id: id("env"),
        evaluated_at: ended,
        flags: [{ flag_id: id("flag", 1), true: 12, false: 3 }],
      },
    ]);
  });

  it("stores the evaluations of a typed flag by variation, and the SDK", async () => {
    const sdk = { name: "@halyard/server-sdk", version: "0.2.0-rc.1+7", knows: ["values"] };
    const typed = { color: { false: 1, variations: { blue: 5, removed: 2 } } };
    expect((await send({ period, flags: typed, sdk })).status).toBe(202);
    expect(await stored()).toMatchObject([
      {
        flags: [{ flag_id: id("flag", 3), true: 0, false: 1, variations: { blue: 5 } }],
        reader: sdk,
      },
    ]);
  });

  it("ignores keys that no flag of the environment has", async () => {
    const names = [
      "__proto__",
      "constructor",
      "toString",
      "",
      "elsewhere",
      "\u0000",
      "a".repeat(999),
    ];
    const flags = Object.fromEntries(names.map((name) => [name, { true: 1 }]));
    expect((await send({ period, flags })).status).toBe(202);
    expect(await stored()).toMatchObject([{ flags: [] }]);
  });

  it("counts the use of the key, and no request", async () => {
    await send(report);
    const tally = edge.counting?.take();
    expect(tally?.environments).toEqual([]);
    expect([...(tally?.keys ?? [])]).toMatchObject([
      [server.keyId, { usedAtMs: expect.any(Number) }],
    ]);
  });

  it("stores a report once that is sent again with its Idempotency-Key, whatever it contains", async () => {
    const other = { period, flags: { alpha: { true: 99 } } };
    for (const body of [report, report, other])
      expect((await send(body, { idempotencyKey: "report 1" })).status).toBe(202);
    expect(await stored()).toMatchObject([{ flags: [{ true: 12 }] }]);
  });

  it("stores reports of different keys separately", async () => {
    await send(report, { idempotencyKey: "report 2" });
    await send(report, { idempotencyKey: "report 2", key: otherServer.text });
    await send(report);
    await send(report);
    expect(new Set((await stored()).map(({ report_id }) => report_id)).size).toBe(4);
  });
});

const flags = (count: unknown) => ({ period, flags: { alpha: { true: count } } });
const variations = (counts: unknown) => ({ period, flags: { color: { variations: counts } } });
const letters = Array.from({ length: 51 }, (_, at) => `a${at}`);
const reportOf = (fields: object) => ({
  ...report,
  sdk: { name: "sdk", version: "1.0.0", knows: ["values"], ...fields },
});
const invalid: [string, unknown][] = [
  ["no period", { flags: {} }],
  ["no flags", { period }],
  ["a list", []],
  ["a period without an end", { period: { start: period.start }, flags: {} }],
  ["a time that is none", { period: { start: "now", end: ended }, flags: {} }],
  [
    "a period that ends before it begins",
    { period: { start: ended, end: period.start }, flags: {} },
  ],
  ["an unknown member", { ...report, users: 3 }],
  ["a member named __proto__", { ...report, ...JSON.parse('{"__proto__":{}}') }],
  ["flags in a list", { period, flags: ["alpha"] }],
  ["counts that are none", { period, flags: { alpha: null } }],
  ["a count of another value", { period, flags: { alpha: { maybe: 1 } } }],
  ["a negative count", flags(-1)],
  ["a fractional count", flags(1.5)],
  ["a count above 2^53", flags(2 ** 53)],
  ["a count of null", flags(null)],
  ["a count in a text", flags("1")],
  ["variations in a list", variations([1])],
  ["a variation without a count", variations({ blue: null })],
  ["a negative count of a variation", variations({ blue: -1 })],
  ["a variation named __proto__", variations(JSON.parse('{"__proto__":1}'))],
  ["a variation with an empty key", variations({ "": 1 })],
  ["a variation with a long key", variations({ ["a".repeat(65)]: 1 })],
  ["more than 50 variations", variations(Object.fromEntries(letters.map((key) => [key, 1])))],
  ["an SDK without a version", { ...report, sdk: { name: "sdk", knows: [] } }],
  ["an SDK with an unknown member", reportOf({ user: "ada" })],
  ["an SDK with white space in its name", reportOf({ name: "my sdk" })],
  ["an SDK with a long version", reportOf({ version: "1".repeat(65) })],
  ["features that are not words", reportOf({ knows: ["Values!"] })],
  ["more than 32 features", reportOf({ knows: letters.slice(0, 33).map((one) => `x-${one}`) })],
];

describe("given an invalid report", () => {
  it.each(invalid)("rejects %s", async (_what, body) => {
    const { status, body: answered } = await send(body);
    expect([status, answered.error?.code]).toEqual([400, "VALIDATION_001"]);
    expect(await stored()).toEqual([]);
  });

  it("names what is wrong with the key of a variation", async () => {
    const { body } = await send(variations({ "a key": 1 }));
    expect(body.error.message).toBe(
      "/flags/color/variations has a name that must be 1 to 64 letters, digits, dots, underscores or hyphens, a letter or digit first",
    );
  });

  it.each(["", "a".repeat(256), "\u00e9"])("rejects the Idempotency-Key %j", async (key) => {
    expect((await send(report, { idempotencyKey: key })).status).toBe(400);
  });

  it("rejects a body above 64 KiB, and accepts one of 64 KiB", async () => {
    const padded = (bytes: number) => {
      const empty = { period, flags: { "": {} } };
      const name = "x".repeat(bytes - JSON.stringify(empty).length);
      return { period, flags: { [name]: {} } };
    };
    const statuses = [await send(padded(64 * 1024)), await send(padded(64 * 1024 + 1))];
    expect(statuses.map(({ status }) => status)).toEqual([202, 413]);
  });
});

describe("given another key", () => {
  it("rejects a client key with 403", async () => {
    const { status, body } = await send(report, { key: client.text });
    expect([status, body.error.code]).toEqual([403, "AUTH_002"]);
  });

  it("rejects an unknown key with 401", async () => {
    expect((await send(report, { key: apiKey({ key_kind: "server" }).text })).status).toBe(401);
  });

  it("applies the rate limit of the key", async () => {
    const limited = await startEdgeServer(entries, {
      requestsPerSecond: 1,
      publishReport: async () => "stored",
    });
    const options = { method: "POST", key: server.text, body: report };
    const sent = [1, 2].map(() => call(`${limited.url}/api/v1/sdk/usage`, options));
    const statuses = (await Promise.all(sent)).map(({ status }) => status);
    await limited.stop();
    expect(statuses.toSorted()).toEqual([202, 429]);
  });

  it("applies the limit of reports to all server keys of the organization, and to nothing else", async () => {
    const foreign = apiKey({ key_kind: "server", organization_id: id("org", 2) });
    const limited = await startEdgeServer([...entries, foreign.entry], {
      // So slow that no report is admitted again while the test runs.
      reportsPerSecond: 0.001,
      publishReport: async () => "stored",
    });
    const sendWith = (key: string) =>
      call(`${limited.url}/api/v1/sdk/usage`, { method: "POST", key, body: report });
    const forbidden = await sendWith(client.text);
    const [first, second] = [await sendWith(server.text), await sendWith(otherServer.text)];
    const ofOthers = await sendWith(foreign.text);
    const flags = await call(`${limited.url}/api/v1/sdk/flags`, { key: server.text });
    await limited.stop();
    expect([forbidden, first, second, ofOthers, flags].map(({ status }) => status)).toEqual([
      403, 202, 429, 202, 200,
    ]);
    expect(second.body.error.message).toMatch(/^Too many usage reports of this organization\. /);
    expect(second.headers.get("retry-after")).not.toBeNull();
  });
});

describe("given a broker that does not store the report", () => {
  const expectUnavailable = async (options = {}) => {
    const { status, body, headers } = await send(report, options);
    expect([status, body.error?.code, headers.get("retry-after")]).toEqual([
      503,
      "SERVER_002",
      "1",
    ]);
  };

  /** Returns whether the broker no longer responds. A busy machine delivers a signal late. */
  const isStopped = () =>
    Promise.race([operator.flush().then(() => false), delay(200, true, { ref: false })]);

  it("answers 503 if the stream does not exist", async () => {
    await manager.streams.delete(evaluationsStream.name);
    await expectUnavailable();
  });

  it("answers 503 if the stream is full", async () => {
    await manager.streams.update(evaluationsStream.name, { max_bytes: 1 });
    await expectUnavailable();
    await manager.streams.update(evaluationsStream.name, { max_bytes: evaluationsStream.maxBytes });
  });

  it("answers 503 if the broker does not respond, and stores the repeated report once", async () => {
    const options = { idempotencyKey: "report 3" };
    nats.signal("SIGSTOP");
    try {
      await eventually(isStopped);
      await expectUnavailable(options);
    } finally {
      nats.signal("SIGCONT");
    }
    await eventually(async () => (await send(report, options)).status === 202);
    expect(await eventually(stored)).toHaveLength(1);
  });

  it("lets no organization take the room of another while the broker does not respond", async () => {
    const publish = createPublishReport({
      connection: own.ready,
      logger: pino({ level: "silent" }),
    });
    const publishFor = (organizationId: string) =>
      publish(organizationId, {
        ...{ report_id: randomUUID(), environment_id: id("env", 1) },
        ...{ evaluated_at: ended, flags: [] },
      });
    await own.ready;
    nats.signal("SIGSTOP");
    const flood = Array.from({ length: 64 }, () => publishFor("one"));
    const other = publishFor("another");
    nats.signal("SIGCONT");
    expect(await other).toBe("stored");
    expect((await Promise.all(flood)).filter((outcome) => outcome === "stored")).toHaveLength(16);
    expect(await publishFor("one")).toBe("stored");
  });

  it("answers 503 without a connection, and 202 when the broker is available again", async () => {
    await nats.kill();
    await expectUnavailable();
    await nats.start();
    await eventually(async () => (await send(report)).status === 202);
  });

  it("answers 503 on an edge that has no broker", async () => {
    const alone = await startEdgeServer(entries);
    const options = { method: "POST", key: server.text, body: report };
    const { status } = await call(`${alone.url}/api/v1/sdk/usage`, options);
    await alone.stop();
    expect(status).toBe(503);
  });
});
