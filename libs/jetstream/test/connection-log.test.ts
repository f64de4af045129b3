import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LocalNats, startLocalNats } from "@halyard/local-backends";
import {
  eventually,
  natsLogin,
  natsServerBinary,
  startTestNats,
  type TestNats,
} from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { errors, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { createConnectionLog } from "../src/connection-log.ts";
import { connectNats } from "../src/index.ts";

type Line = { level: number; msg: string; reason?: string; subject?: string };

function createLog() {
  const lines: Line[] = [];
  const write = (line: string) => void lines.push(JSON.parse(line));
  return { logger: pino({}, { write }), lines };
}

const directory = mkdtempSync(join(tmpdir(), "halyard-connection-log-"));
let server: LocalNats | undefined;
let connection: NatsConnection | undefined;
afterEach(async () => {
  await connection?.close();
  await server?.stop();
  connection = undefined;
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

async function startServer(password: string, port?: number): Promise<LocalNats> {
  return startLocalNats({
    binary: await natsServerBinary(),
    storeDir: join(directory, "store"),
    settings: `authorization { users: [{ user: "edge", password: ${JSON.stringify(password)} }] }`,
    ...(port !== undefined && { port }),
  });
}

/** Connects with a password, and records the reported problems. */
function connectWith(password: string) {
  const log = createLog();
  const problems: (string | undefined)[] = [];
  const nats = { url: server?.url ?? "", user: "edge", password };
  const onProblem = (reason: string | undefined) => void problems.push(reason);
  const connecting = connectNats({ nats, name: "test", logger: log.logger, onProblem });
  void connecting.then((established) => {
    connection = established;
  });
  const linesOf = (text: string) => log.lines.filter(({ msg }) => msg.startsWith(text));
  return { connecting, problems, linesOf };
}

describe("given a password that NATS rejects", () => {
  it("logs the reason once, reports it after each attempt, and connects when NATS accepts it", async () => {
    server = await startServer("another");
    const { port } = server;
    const { connecting, problems, linesOf } = connectWith("right");
    await eventually(() => problems.length >= 3);
    expect(problems).toEqual(problems.map(() => "AuthorizationError"));
    expect(linesOf("NATS rejected the login")).toMatchObject([{ reason: "AuthorizationError" }]);
    await server.stop();
    server = await startServer("right", port);
    await connecting;
    expect(problems.at(-1)).toBeUndefined();
  });

  it("does the same if the password is changed while it is connected", async () => {
    server = await startServer("right");
    const { port } = server;
    const { connecting, problems, linesOf } = connectWith("right");
    await connecting;
    await server.stop();
    server = await startServer("another", port);
    await eventually(() => problems.filter((problem) => problem !== undefined).length >= 3);
    expect(linesOf("NATS rejected the login")).toHaveLength(1);
    expect(linesOf("NATS is disconnected")).toHaveLength(1);
    await server.stop();
    server = await startServer("right", port);
    await eventually(() => problems.at(-1) === undefined);
    expect(linesOf("NATS is connected again").length).toBeGreaterThan(0);
  });
});

describe("given an error of NATS", () => {
  const rejected = Object.assign(new Error("s3cret-mark"), { code: "ECONNRESET" });
  const cases = [
    { error: new errors.ProtocolError("s3cret-mark"), reason: "ProtocolError" },
    {
      error: new errors.ConnectionError("s3cret-mark", { cause: rejected }),
      reason: "ConnectionError (Error ECONNRESET)",
    },
  ];

  it.each(cases)(
    "logs $reason, before and after the connection is established, once each",
    async ({ error, reason }) => {
      const { logger, lines } = createLog();
      const onProblem = () => undefined;
      const log = createConnectionLog({ logger, onProblem, monotonicMs: () => 0 });
      log.failed(error);
      async function* status() {
        yield { type: "error", error };
        yield { type: "error", error };
        yield { type: "reconnect" };
      }
      log.connected({ status } as unknown as NatsConnection);
      await eventually(() => lines.at(-1)?.msg === "NATS is connected again");
      expect(lines).toMatchObject([
        { msg: "NATS cannot be reached; retrying", reason },
        { msg: "NATS reports an error", reason },
        { msg: "NATS is connected again" },
      ]);
      expect(JSON.stringify(lines)).not.toContain("s3cret-mark");
    },
  );
});

describe("given a user without the right to publish to a subject", () => {
  let nats: TestNats;
  beforeAll(async () => {
    nats = await startTestNats();
  });
  afterAll(() => nats.stop());

  it("logs the denied operation with its subject, once", async () => {
    const { logger, lines } = createLog();
    connection = await connectNats({
      nats: natsLogin("sdk-edge", nats.url),
      name: "sdk-edge",
      logger,
    });
    for (let times = 0; times < 3; times += 1) connection.publish("flag.toggled", "{}");
    await connection.flush();
    await eventually(() => lines.length > 0);
    expect(lines).toMatchObject([
      { msg: expect.stringMatching(/denied/), subject: "flag.toggled" },
    ]);
  });
});
