import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import { type Behavior, environmentId, event, type FakeEdge } from "./support/fake-edge.ts";
import { endAll, type Setup, setUp } from "./support/setup.ts";

afterEach(endAll);

/** Lets time pass, second by second, until the client has the flags of the edge. */
async function catchesUp({ client, edge, clock }: Setup, stepMs = 1_000): Promise<void> {
  await eventually(
    () => {
      clock.advance(stepMs);
      return client.allFlags();
    },
    { until: (flags) => JSON.stringify(flags) === JSON.stringify(edge.values) },
  );
}

/** Waits until the client has opened a stream and has its flags. */
async function streaming({ client }: Setup): Promise<void> {
  await eventually(() => client.status.connection === "streaming");
}

/** Serves a stream that sends its flags and one heartbeat, and then hangs. */
function hungAfterStart(edge: FakeEdge, interval: number | undefined): Behavior {
  return (_, reply) => {
    reply.head(200, { "content-type": "text/event-stream" });
    reply.write(
      event(edge.tag, { format: 2, environment_id: environmentId, flags: {}, full: true }),
    );
    reply.write(`event: heartbeat\ndata: ${JSON.stringify({ timestamp: 1, interval })}\n\n`);
  };
}

const turnOff = (edge: FakeEdge) => edge.change("new-checkout", { enabled: false });

describe("a lost connection", () => {
  test("of an edge that restarts: the client has the missed change, and no older flags meanwhile", async () => {
    const setup = await setUp();
    const { client, edge, served } = setup;
    await streaming(setup);
    const tag = edge.tag;
    await served.stop();
    await eventually(() => client.status.connection === "connecting");
    expect(client.isEnabled("new-checkout")).toBe(true);
    turnOff(edge);
    await served.start();
    await catchesUp(setup);
    expect(edge.of("stream").at(-1)?.headers["last-event-id"] ?? tag).toBe(tag);
  });

  test.each([
    ["every 3 s is opened again after 8 s", 3, 8],
    ["every 10 s is opened again after 22 s", 10, 22],
    ["of an earlier edge is opened again after 45 s", undefined, 45],
  ])("without a notice: a silent stream with heartbeats %s", async (_, interval, silenceS) => {
    const setup = await setUp({}, (edge) => edge.behave("stream", hungAfterStart(edge, interval)));
    const { client, edge, served, clock, warnings } = setup;
    await streaming(setup);
    clock.advance(silenceS * 1_000 - 1);
    expect(client.status.current).toBe(true);
    clock.advance(1);
    await eventually(() => !client.status.current);
    expect(warnings()).toEqual([
      `Halyard: The stream of ${served.url} sent nothing for ${silenceS} s. The client connects again.`,
    ]);
    clock.advance(5_500);
    await eventually(() => edge.of("stream").length === 2);
  });

  test("is logged with the address and the error code of the next attempt", async () => {
    const setup = await setUp();
    const { served, clock, warnings } = setup;
    await streaming(setup);
    await served.stop();
    await eventually(() => {
      clock.advance(1_000);
      return warnings().length > 0;
    });
    const { host } = new URL(served.url);
    expect(warnings()).toEqual([
      `Halyard: No connection to ${served.url}: connect ECONNREFUSED ${host}. The client retries.`,
    ]);
  });

  test("during a suspension: the client opens a stream immediately", async () => {
    for (const monotonicContinues of [true, false]) {
      const setup = await setUp();
      const { edge, clock } = setup;
      await streaming(setup);
      clock.suspend(3_600_000, { monotonicContinues });
      // The next tick, and no backoff after it.
      clock.advance(5_000);
      await eventually(() => {
        clock.advance(0);
        return edge.of("stream").length === 2;
      });
    }
  });

  test("is not assumed if the clock is set back", async () => {
    const setup = await setUp();
    const { client, edge, clock } = setup;
    await streaming(setup);
    clock.setWall(-86_400_000);
    clock.advance(10_000);
    turnOff(edge);
    await catchesUp(setup);
    expect(edge.of("stream").length).toBe(1);
    expect(client.status.current).toBe(true);
  });

  test("emits stale after 15 s and current when the client is connected again", async () => {
    const setup = await setUp();
    const { client, served, clock } = setup;
    const events: string[] = [];
    client.on("stale", () => events.push("stale"));
    client.on("current", () => events.push("current"));
    await streaming(setup);
    await served.stop();
    await eventually(() => client.status.current === false);
    expect(events).toEqual(["current"]);
    clock.advance(15_000);
    expect(events).toEqual(["current", "stale"]);
    await served.start();
    await catchesUp(setup);
    await eventually(() => {
      clock.advance(1_000);
      return client.status.current;
    });
    expect(events).toEqual(["current", "stale", "current"]);
  });
});

describe("a service that rejects the key", () => {
  test.each([
    [401, "unauthorized"],
    [403, "forbidden"],
  ])("with %i gets no further request, and the client keeps its flags", async (status, code) => {
    const setup = await setUp();
    const { client, edge, clock, warnings } = setup;
    const errors: unknown[] = [];
    client.on("error", (error) => errors.push(error));
    await streaming(setup);
    edge.behave("stream", { status, headers: { "content-type": "application/json" } });
    edge.cutStreams();
    await eventually(() => {
      clock.advance(100);
      return client.status.connection === "stopped";
    });
    clock.advance(3_600_000);
    await eventually(() => errors.length === 1);
    expect(errors).toMatchObject([{ code, fatal: true }]);
    expect(warnings().length).toBe(1);
    expect(edge.of("stream").length).toBe(2);
    expect(client.isEnabled("new-checkout")).toBe(true);
    expect(client.status.current).toBe(false);
  });

  test("is not assumed when a firewall responds with 403", async () => {
    const setup = await setUp();
    const { client, edge, clock, warnings } = setup;
    await streaming(setup);
    const page = { status: 403, headers: { "content-type": "text/html" }, body: "<h1>Denied" };
    edge.behave("stream", page);
    edge.behave("poll", page);
    edge.cutStreams();
    await eventually(() => {
      clock.advance(100);
      return warnings().some((line) => line.includes("403 from a proxy"));
    });
    edge.behave("stream", "normal");
    edge.behave("poll", "normal");
    turnOff(edge);
    await catchesUp(setup);
    expect(client.status.connection).not.toBe("stopped");
  });

  test("makes ready resolve with false immediately", async () => {
    const { client } = await setUp({}, (edge) => edge.behave("stream", { status: 401 }));
    expect(await client.ready({ timeoutMs: 3_600_000 })).toBe(false);
  });
});

describe("a stream that is refused", () => {
  const refusal = { status: 429, headers: { "retry-after": "600" } };

  test("is replaced by polls, which receive changes", async () => {
    const setup = await setUp({}, (edge) => edge.behave("stream", refusal));
    const { client, edge, clock } = setup;
    expect(await readyAfterPoll(setup)).toBe(true);
    expect(client.status).toMatchObject({ source: "poll", current: true, connection: "polling" });
    turnOff(edge);
    clock.advance(66_000);
    await eventually(() => client.isEnabled("new-checkout") === false);
    expect(edge.of("poll").map(({ headers }) => headers["if-none-match"])).toEqual([
      undefined,
      expect.any(String),
    ]);
  });

  test("leaves the flags not current while polls fail, and current after the next one", async () => {
    const setup = await setUp({}, (edge) => edge.behave("stream", refusal));
    const { client, edge, clock } = setup;
    await readyAfterPoll(setup);
    edge.behave("poll", "reset");
    clock.advance(66_000);
    await eventually(() => !client.status.current);
    edge.behave("poll", "normal");
    await eventually(() => {
      clock.advance(500);
      return client.status.current;
    });
  });

  test("is opened when the time in Retry-After has passed, and ends the polls", async () => {
    const setup = await setUp({}, (edge) => edge.behave("stream", refusal));
    const { client, edge, clock } = setup;
    await readyAfterPoll(setup);
    edge.behave("stream", "normal");
    for (let minute = 0; minute < 8; minute += 1) await passPoll(setup);
    expect(edge.of("stream").length).toBe(1);
    await eventually(() => {
      clock.advance(1_000);
      return client.status.connection === "streaming";
    });
    const polls = edge.of("poll").length;
    clock.advance(40_000);
    expect(edge.of("poll").length).toBe(polls);
  });

  test("does not make the client poll more often than the service allows", async () => {
    const setup = await setUp({}, (edge) => {
      edge.behave("stream", refusal);
      edge.behave("poll", { status: 429, headers: { "retry-after": "300" } });
    });
    const { edge, clock } = setup;
    await eventually(() => {
      clock.advance(0);
      return edge.of("poll").length === 1;
    });
    for (let second = 0; second < 300; second += 1) clock.advance(1_000);
    expect(edge.of("poll").length).toBe(1);
  });
});

describe("a stream that sends nothing", () => {
  test.each([
    ["withhold", "opened, but no rules arrived in time"],
    ["hang", "No response from"],
  ] as const)(
    "(%s) makes the client poll after 8 s, and the log says what happened",
    async (behavior, reason) => {
      const requests = jest.spyOn(globalThis, "fetch");
      const setup = await setUp({}, (edge) => edge.behave("stream", behavior));
      const { client, edge, clock } = setup;
      await eventually(() => edge.of("stream").length === 1);
      // The log depends on whether the head of the response has arrived.
      if (behavior === "withhold") await requests.mock.results[0]?.value;
      clock.advance(8_000);
      expect(await readyAfterPoll(setup)).toBe(true);
      expect(setup.warnings()).toEqual([expect.stringContaining(reason)]);
      turnOff(edge);
      await catchesUp(setup);
      expect(client.status.source).toBe("poll");
      requests.mockRestore();
    },
  );
});

describe("a service that is unavailable", () => {
  test("with 503 gets few requests, and the client has the change in the end", async () => {
    const setup = await setUp();
    const { client, edge, clock } = setup;
    await streaming(setup);
    for (const route of ["stream", "poll"] as const)
      edge.behave(route, { status: 503, headers: { "retry-after": "5" } });
    edge.cutStreams();
    turnOff(edge);
    const before = edge.requests.length;
    for (let second = 0; second < 600; second += 1) {
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
    }
    // Ten minutes: one request in each period of 5.5 s.
    expect(edge.requests.length - before).toBeLessThanOrEqual(110);
    expect(client.isEnabled("new-checkout")).toBe(true);
    edge.behave("stream", "normal");
    await catchesUp(setup);
  });

  test("keeps the client's flags if it has older ones", async () => {
    const setup = await setUp();
    const { client, edge, clock } = setup;
    await streaming(setup);
    turnOff(edge);
    await eventually(() => client.isEnabled("new-checkout") === false);
    // The client now reaches an edge that is behind.
    const behind = (await setUp()).edge;
    behind.isolate();
    for (const route of ["stream", "poll"] as const)
      edge.behave(route, (request, reply) => behind.handle(request, reply));
    edge.cutStreams();
    for (let second = 0; second < 120; second += 1) {
      clock.advance(1_000);
      await new Promise((resolve) => setImmediate(resolve));
      expect(client.isEnabled("new-checkout")).toBe(false);
    }
    expect(behind.requests.length).toBeGreaterThan(3);
  });

  test("and responds 304 to every request keeps the client's flags", async () => {
    const setup = await setUp({}, (edge) => edge.behave("stream", { status: 429 }));
    const { client, edge } = setup;
    await readyAfterPoll(setup);
    edge.behave("poll", { status: 304 });
    for (let count = 0; count < 5; count += 1) await passPoll(setup);
    expect(client.isEnabled("new-checkout")).toBe(true);
    edge.behave("poll", "normal");
    turnOff(edge);
    await catchesUp(setup, 10_000);
  });

  test("and responds 304 to a client without flags leaves it without flags", async () => {
    const setup = await setUp({}, (edge) => {
      edge.behave("stream", { status: 429 });
      edge.behave("poll", { status: 304 });
    });
    await eventually(() => {
      setup.clock.advance(0);
      return setup.edge.of("poll").length === 1;
    });
    expect(setup.client.status).toMatchObject({ source: "none", current: false });
  });
});

describe("damaged data", () => {
  const complete = { format: 2, environment_id: environmentId, flags: {} };
  const start = "event: ruleset\nid: ";

  test.each<[string, string | Uint8Array]>([
    ["an event without JSON", `${start}"9-x"\ndata: {"format":2,"environment_id":\n\n`],
    ["an event of another form", event('"9-x"', { flags: [] })],
    ["an event without an id", `event: ruleset\ndata: ${JSON.stringify(complete)}\n\n`],
    ["an event of another environment", event('"9-x"', { ...complete, environment_id: "other" })],
    ["an event whose name is damaged", `event: rulesex\nid: "9-x"\ndata: {}\n\n`],
    ["a line that is no field", `evénement ruleset\n\n`],
    ["bytes that are not UTF-8", Uint8Array.of(0x64, 0xff, 0xfe, 0x0a, 0x0a)],
  ])("(%s) does not change the flags and does not lose a later change", async (_, bytes) => {
    const setup = await setUp();
    const { client, edge } = setup;
    await streaming(setup);
    edge.write(bytes);
    await eventually(() => client.status.connection !== "streaming");
    expect(client.allFlags()).toEqual({ "new-checkout": true });
    turnOff(edge);
    await catchesUp(setup);
    expect(setup.warnings().length).toBe(1);
  });

  test("(a stream that is cut inside an event) does not change the flags and does not lose the change", async () => {
    const setup = await setUp();
    const { client, edge } = setup;
    await streaming(setup);
    edge.write(event('"9-x"', { ...complete, removed: ["new-checkout"] }).slice(0, -1));
    edge.cutStreams();
    await eventually(() => client.status.connection !== "streaming");
    expect(client.allFlags()).toEqual({ "new-checkout": true });
    turnOff(edge);
    await catchesUp(setup);
  });

  test("(a stream that always sends damaged events) is supplemented by polls", async () => {
    const setup = await setUp({}, (edge) =>
      edge.behave("stream", (_, reply) => {
        reply.head(200, { "content-type": "text/event-stream" });
        reply.write("event: ruleset\ndata: garbage\n\n");
      }),
    );
    await catchesUp(setup);
    turnOff(setup.edge);
    await catchesUp(setup, 5_000);
  });

  test.each([
    "",
    "garbage",
    "{}",
    "[]",
    "null",
    '{"format":2,"environment_id":"x","flags":{"a":1}}',
  ])("(a poll that receives %j) keeps the flags", async (body) => {
    const setup = await setUp({}, (edge) => edge.behave("stream", { status: 429 }));
    const { client, edge, clock } = setup;
    await readyAfterPoll(setup);
    edge.behave("poll", { status: 200, headers: { etag: '"9-x"' }, body });
    const errors: string[] = [];
    client.on("error", ({ code }) => errors.push(code));
    await eventually(() => {
      clock.advance(5_000);
      return errors.includes("invalid_data");
    });
    expect(client.allFlags()).toEqual({ "new-checkout": true });
    edge.behave("poll", "normal");
    turnOff(edge);
    await catchesUp(setup, 5_000);
  });

  test("(an event in pieces of one byte) is read completely", async () => {
    const setup = await setUp();
    const { client, edge } = setup;
    await streaming(setup);
    const data = { ...complete, flags: { ümlaut: { ...flag, version: 9 } } };
    for (const byte of new TextEncoder().encode(event('"9-x"', data)))
      edge.write(Uint8Array.of(byte));
    await eventually(() => client.isEnabled("ümlaut"));
  });
});

const flag = { enabled: true, rollout_percentage: 100, targeting_rules: [] };

async function readyAfterPoll({ client, clock }: Setup): Promise<boolean> {
  await eventually(() => {
    clock.advance(0);
    return client.status.current;
  });
  return client.ready();
}

/** Lets time pass until the next poll. */
async function passPoll({ edge, clock }: Setup): Promise<void> {
  const count = edge.of("poll").length;
  await eventually(() => {
    clock.advance(1_000);
    return edge.of("poll").length > count;
  });
}
