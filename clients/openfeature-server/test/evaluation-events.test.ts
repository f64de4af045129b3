import { createEvaluationEvents, HalyardProvider } from "@halyard/openfeature-server";
import { createTestClient } from "@halyard/server-sdk";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { OpenFeature } from "@openfeature/server-sdk";
import { environmentId, projectId } from "../../server-sdk/test/support/fake-edge.ts";
import { endAll, recordingLogger, serverKey, setUp } from "../../server-sdk/test/support/setup.ts";

type Logger = Parameters<typeof createEvaluationEvents>[0]["logger"];
type Attributes = Parameters<Logger["emit"]>[0]["attributes"];

let emitted: Attributes[];
beforeEach(() => {
  emitted = [];
});
afterEach(async () => {
  jest.useRealTimers();
  OpenFeature.clearHooks();
  await OpenFeature.clearProviders();
  await endAll();
});

const logger: Logger = { emit: ({ attributes }) => void emitted.push(attributes) };
const client = OpenFeature.getClient();
const context = { targetingKey: "user-1" };

describe("given a provider with events", () => {
  it("emits one event for 1,000 evaluations when it is closed", async () => {
    const { served } = await setUp();
    const lines: Parameters<typeof recordingLogger>[0] = [];
    const provider = new HalyardProvider({
      ...{ baseUrl: served.url, serverKey, logger: recordingLogger(lines) },
      evaluationEvents: createEvaluationEvents({ logger }),
    });
    await OpenFeature.setProviderAndWait(provider);
    for (let time = 0; time < 1_000; time += 1)
      await client.getBooleanValue("new-checkout", false, context);
    expect(emitted).toEqual([]);
    await OpenFeature.clearProviders();
    expect(emitted).toEqual([
      {
        "feature_flag.key": "new-checkout",
        "feature_flag.provider.name": "halyard",
        "feature_flag.result.reason": "static",
        "feature_flag.result.variant": "on",
        "feature_flag.set.id": `${projectId}/${environmentId}`,
        "feature_flag.version": "1",
        "halyard.evaluation.count": 1_000,
      },
    ]);
    expect(lines.filter(({ level }) => level !== "info")).toEqual([]);
  });

  it("emits an event for each variation after a minute", async () => {
    const halyard = createTestClient({ "new-checkout": true });
    const evaluationEvents = createEvaluationEvents({ logger, contextId: true });
    await OpenFeature.setProviderAndWait(
      new HalyardProvider({ client: halyard, evaluationEvents }),
    );
    jest.useFakeTimers({ doNotFake: ["nextTick", "queueMicrotask"] });
    await client.getBooleanValue("new-checkout", false, context);
    halyard.set("new-checkout", false);
    await client.getBooleanValue("new-checkout", false, context);
    jest.advanceTimersByTime(59_999);
    expect(emitted).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(emitted.map((one) => one["feature_flag.result.variant"])).toEqual(["on", "off"]);
    expect(emitted[0]).toHaveProperty(["feature_flag.context.id"], "user-1");
  });

  it("counts errors, also those without a call of the provider", async () => {
    const { promise: ready, resolve: becomeReady } = Promise.withResolvers<boolean>();
    const halyard = { ...createTestClient({ "new-checkout": true }), ready: () => ready };
    const evaluationEvents = createEvaluationEvents({ logger });
    const provider = new HalyardProvider({ client: halyard, evaluationEvents });
    const setting = OpenFeature.setProviderAndWait(provider);
    await client.getBooleanValue("early", true);
    becomeReady(true);
    await setting;
    await client.getBooleanValue("missing", true);
    await client.getStringValue("new-checkout", "blue");
    client.addHooks({
      before() {
        throw new Error("no user");
      },
    });
    await client.getBooleanValue("new-checkout", true);
    client.clearHooks();
    evaluationEvents.flush();
    const names = ["feature_flag.key", "error.type", "feature_flag.result.value"];
    expect(emitted.map((one) => names.map((name) => one[name]))).toEqual([
      ["early", "provider_not_ready", true],
      ["missing", "flag_not_found", true],
      ["new-checkout", "type_mismatch", "blue"],
      ["new-checkout", "general", true],
    ]);
    expect(emitted[1]).toMatchObject({
      "feature_flag.result.reason": "error",
      "feature_flag.error.message": "The environment has no flag with this key.",
    });
  });

  it("keeps no process running", () => {
    const timers = jest.spyOn(globalThis, "setTimeout");
    const { finally: count, flush } = createEvaluationEvents({ logger });
    count({ flagKey: "new-checkout", context }, { value: true, flagMetadata: {} });
    const [timer] = timers.mock.results.map(({ value }) => value as NodeJS.Timeout);
    expect(timer?.hasRef()).toBe(false);
    flush();
    timers.mockRestore();
  });
});

it("a provider without events has no hook", () => {
  expect(new HalyardProvider({ client: createTestClient() }).hooks).toEqual([]);
});
