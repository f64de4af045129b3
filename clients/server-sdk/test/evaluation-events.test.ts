import { afterEach, describe, expect, test } from "@jest/globals";
import { context, trace } from "@opentelemetry/api";
import {
  InMemoryLogRecordExporter,
  LoggerProvider,
  SimpleLogRecordProcessor,
} from "@opentelemetry/sdk-logs";
import type { ClientOptions } from "../src/options.ts";
import { environmentId, projectId, type Settings } from "./support/fake-edge.ts";
import { endAll, newCacheFile, type Setup, setUp, startClient } from "./support/setup.ts";

afterEach(endAll);

type Options = NonNullable<ClientOptions["evaluationEvents"]>;
type Event = Parameters<Options["logger"]["emit"]>[0];

const minuteMs = 60_000;
const setId = `${projectId}/${environmentId}`;

const limits: Settings = {
  value_type: "number",
  variations: [
    { key: "small", value: 5 },
    { key: "large", value: 50 },
  ],
  serve: { variation: "small" },
  off_variation: null,
  targeting_rules: [
    {
      conditions: [{ attribute: "plan", operator: "equals", value: "pro" }],
      serve: { variation: "large" },
    },
  ],
};

type WithEvents = Setup & {
  events: Event[];
  /** Returns the attributes of the events so far that tell one from another. */
  told(...names: string[]): unknown[][];
};

/** Starts a client with events of a fake logger, and waits for its flags. */
async function withEvents(
  given: Partial<Options> = {},
  flags: Record<string, Settings> = {},
): Promise<WithEvents> {
  const events: Event[] = [];
  const logger = { emit: (event: Event) => void events.push(event) };
  const setup = await setUp({ evaluationEvents: { logger, ...given } }, (edge) => {
    for (const [key, settings] of Object.entries(flags)) edge.change(key, settings);
  });
  await setup.client.ready();
  const told = (...names: string[]) =>
    events.map(({ attributes }) => names.map((name) => attributes[name]));
  return { ...setup, events, told };
}

const key = "feature_flag.key";
const variant = "feature_flag.result.variant";
const value = "feature_flag.result.value";
const reason = "feature_flag.result.reason";
const userId = "feature_flag.context.id";
const count = "halyard.evaluation.count";

describe("a client with a logger for events", () => {
  test("emits one event for 1,000 evaluations in a minute", async () => {
    const { client, clock, events } = await withEvents();
    for (let user = 0; user < 1_000; user += 1)
      client.isEnabled("new-checkout", { id: `user-${user}` });
    clock.advance(minuteMs - 1);
    expect(events).toEqual([]);
    clock.advance(1);
    expect(events.map(({ eventName, attributes }) => ({ eventName, attributes }))).toEqual([
      {
        eventName: "feature_flag.evaluation",
        attributes: {
          [key]: "new-checkout",
          "feature_flag.provider.name": "halyard",
          [reason]: "static",
          [variant]: "on",
          "feature_flag.set.id": setId,
          "feature_flag.version": "1",
          [count]: 1_000,
        },
      },
    ]);
  });

  test("counts each variation separately, read by any method", async () => {
    const { client, clock, told } = await withEvents({}, { limits });
    const pro = { plan: "pro" };
    expect(client.getNumber("limits", pro, 0)).toBe(50);
    expect(client.getInteger("limits", pro, 0)).toBe(50);
    expect(client.getNumberDetails("limits", pro, 0).variation).toBe("large");
    expect(client.getNumber("limits", {}, 7)).toBe(7);
    clock.advance(minuteMs);
    expect(told(variant, value, reason, count)).toEqual([
      ["large", undefined, "targeting_match", 3],
      [undefined, 7, "default", 1],
    ]);
  });

  test("counts `allFlags` and `allValues` as one evaluation of each flag", async () => {
    const { client, clock, told } = await withEvents({}, { limits });
    expect(client.allFlags({ plan: "pro" })).toEqual({ "new-checkout": true });
    expect(client.allValues({ plan: "pro" })).toMatchObject({ limits: { variation: "large" } });
    clock.advance(minuteMs);
    expect(told(key, variant, reason, count)).toEqual([
      ["new-checkout", "on", "static", 2],
      ["limits", "large", "targeting_match", 1],
    ]);
  });

  test("counts each version of a flag separately", async () => {
    const { client, clock, edge, told } = await withEvents();
    client.isEnabled("new-checkout");
    edge.change("new-checkout", { enabled: false });
    await clock.run(1_000);
    client.isEnabled("new-checkout");
    clock.advance(minuteMs);
    expect(told("feature_flag.version", variant, reason, "feature_flag.set.id")).toEqual([
      ["1", "on", "static", setId],
      ["2", "off", "disabled", setId],
    ]);
  });

  test("names the newest version of a flag whose settings are the same", async () => {
    const { client, clock, edge, told } = await withEvents({}, { limits });
    edge.change("limits", limits);
    await clock.run(1_000);
    client.getNumber("limits", {}, 7);
    clock.advance(minuteMs);
    expect(told("feature_flag.version")).toEqual([["3"]]);
  });

  test("emits the last counts when it is closed", async () => {
    const { client, told } = await withEvents();
    client.isEnabled("new-checkout");
    await client.close();
    expect(told(key, count)).toEqual([["new-checkout", 1]]);
  });

  test("names the project and the environment of flags from a cache file", async () => {
    const cacheFile = await newCacheFile();
    const { client, clock, served } = await setUp({ cacheFile });
    await client.ready();
    await client.close();
    await served.stop();
    const restarted = startClient(clock, { baseUrl: served.url, cacheFile });
    expect([restarted.status.source, restarted.flagSetId]).toEqual(["cache", setId]);
  });

  test("has the prerequisite's result with the reason default", async () => {
    const requires = [{ flag: "new-checkout", is: "off" }] as const;
    const { client, clock, told } = await withEvents({}, { dependent: { requires } });
    expect(client.evaluate("dependent").reason).toBe("prerequisite_failed");
    clock.advance(minuteMs);
    expect(told(variant, reason)).toEqual([["off", "default"]]);
  });
});

describe("an evaluation that fails", () => {
  const errors = (told: WithEvents["told"]) =>
    told(key, reason, "error.type", "feature_flag.error.message", value, count);

  test("is an event with the error and the fallback", async () => {
    const { client, clock, told } = await withEvents();
    client.isEnabled("missing", {}, true);
    client.isEnabled("missing", {}, true);
    client.getString("new-checkout", {}, "blue");
    clock.advance(minuteMs);
    expect(errors(told)).toEqual([
      [
        ...["missing", "error", "flag_not_found", "The environment has no flag with this key."],
        ...[true, 2],
      ],
      [
        ...["new-checkout", "error", "type_mismatch", "The flag has values of another type."],
        ...["blue", 1],
      ],
    ]);
  });

  test.each<[string, Partial<ClientOptions>, string]>([
    ["without flags", {}, "provider_not_ready"],
    ["without a key", { serverKey: "" }, "provider_fatal"],
  ])("names the error %s", async (_when, options, expected) => {
    const { clock } = await setUp();
    const events: Event[] = [];
    const logger = { emit: (event: Event) => void events.push(event) };
    const ignore = () => undefined;
    const client = startClient(clock, {
      ...{ evaluationEvents: { logger }, ...options },
      logger: { info: ignore, warn: ignore, error: ignore },
    });
    client.isEnabled("new-checkout");
    await client.close();
    expect(events.map(({ attributes }) => attributes["error.type"])).toEqual([expected]);
    expect(events[0]?.attributes).not.toHaveProperty(["feature_flag.set.id"]);
  });

  test("names an invalid context, and a key that is no text", async () => {
    const { client, clock, told } = await withEvents({ contextId: true }, { limits });
    const throwing = {
      get id(): string {
        throw new Error("no id");
      },
      get plan(): string {
        throw new Error("no plan");
      },
    };
    client.getNumber("limits", throwing, 7);
    client.isEnabled(7 as never);
    client.isEnabled("x".repeat(200));
    clock.advance(minuteMs);
    expect(told(key, "error.type")).toEqual([
      ["limits", "invalid_context"],
      ["a number", "flag_not_found"],
      ["x".repeat(128), "flag_not_found"],
    ]);
  });
});

describe("the ids of users", () => {
  test("are in no event by default", async () => {
    const { client, clock, told } = await withEvents();
    client.isEnabled("new-checkout", { id: "user-1" });
    client.isEnabled("new-checkout", { id: "user-2" });
    clock.advance(minuteMs);
    expect(told(userId, count)).toEqual([[undefined, 2]]);
  });

  test("are in events with `contextId: true`", async () => {
    const { client, clock, told } = await withEvents({ contextId: true });
    for (const user of [{ id: "user-1" }, { user_id: 7 }, { id: "" }, {}, null, { id: "user-1" }])
      client.isEnabled("new-checkout", user);
    clock.advance(minuteMs);
    expect(told(userId, count)).toEqual([
      ["user-1", 2],
      ["7", 1],
      [undefined, 3],
    ]);
  });

  test("are limited, with one line in the log", async () => {
    const { client, clock, events, warnings } = await withEvents({ contextId: true });
    for (let user = 0; user < 2_010; user += 1)
      client.isEnabled("new-checkout", { id: `user-${user}` });
    clock.advance(minuteMs);
    expect(events).toHaveLength(2_000);
    expect(warnings()).toEqual([
      "Halyard: 10 evaluations are in no event: a minute had more than 2000 users, defaults and errors.",
    ]);
  });
});

describe("a client without events", () => {
  test("starts no timer for them", async () => {
    const { client, clock } = await setUp();
    await client.ready();
    const before = clock.timers;
    client.isEnabled("new-checkout");
    client.isEnabled("missing");
    expect(clock.timers).toBe(before);
  });

  test.each([{}, { logger: {} }, true])("ignores the option %j with a warning", async (given) => {
    const { client, warnings } = await setUp({ evaluationEvents: given as never });
    await client.ready();
    expect(client.isEnabled("new-checkout")).toBe(true);
    expect(warnings()).toEqual([
      "Halyard: Invalid `evaluationEvents`: expected a `logger` with the function `emit`.",
    ]);
  });
});

test("an event of OpenTelemetry's SDK belongs to no trace of an evaluation", async () => {
  const exporter = new InMemoryLogRecordExporter();
  const provider = new LoggerProvider({
    processors: [new SimpleLogRecordProcessor({ exporter })],
  });
  const span = { traceId: "a".repeat(32), spanId: "b".repeat(16), traceFlags: 1 };
  const ofRequest = trace.setSpanContext(context.active(), span);
  context.setGlobalContextManager({
    active: () => ofRequest,
    with: (_context, work, self, ...given) => work.apply(self, given),
    bind: (_context, target) => target,
    enable() {
      return this;
    },
    disable() {
      return this;
    },
  });
  try {
    const { client } = await withEvents({ logger: provider.getLogger("shop") });
    client.isEnabled("new-checkout");
    await client.close();
    const [record] = exporter.getFinishedLogRecords();
    expect(record?.eventName).toBe("feature_flag.evaluation");
    expect(record?.attributes).toMatchObject({ [key]: "new-checkout", [count]: 1 });
    expect(record?.spanContext).toBeUndefined();
  } finally {
    context.disable();
  }
});
