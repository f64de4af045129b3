import { createTestClient } from "@halyard/browser-sdk";
import { createEvaluationEvents, HalyardProvider } from "@halyard/openfeature-web";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { OpenFeature } from "@openfeature/web-sdk";
import { clientKey, type FakeEdge, startFakeEdge } from "./fake-edge.ts";

type Logger = Parameters<typeof createEvaluationEvents>[0]["logger"];
type Attributes = Parameters<Logger["emit"]>[0]["attributes"];

let emitted: Attributes[];
let edge: FakeEdge;
beforeEach(async () => {
  emitted = [];
  edge = await startFakeEdge({ "new-checkout": {} });
});
afterEach(async () => {
  jest.useRealTimers();
  Reflect.deleteProperty(globalThis, "document");
  await OpenFeature.clearProviders();
  await edge.close();
});

const logger: Logger = { emit: ({ attributes }) => void emitted.push(attributes) };
const client = OpenFeature.getClient();

describe("given a provider with events", () => {
  it("emits one event for 1,000 evaluations when it is closed", async () => {
    const provider = new HalyardProvider({
      ...{ baseUrl: edge.url, clientKey },
      evaluationEvents: createEvaluationEvents({ logger, setId: "a-project/an-environment" }),
    });
    await OpenFeature.setProviderAndWait(provider, { targetingKey: "user-1" });
    for (let time = 0; time < 1_000; time += 1) client.getBooleanValue("new-checkout", false);
    expect(emitted).toEqual([]);
    await OpenFeature.clearProviders();
    expect(emitted).toEqual([
      {
        "feature_flag.key": "new-checkout",
        "feature_flag.provider.name": "halyard",
        "feature_flag.result.reason": "unknown",
        "feature_flag.result.variant": "on",
        "feature_flag.set.id": "a-project/an-environment",
        "halyard.evaluation.count": 1_000,
      },
    ]);
  });

  it("emits an event for each variation after a minute", async () => {
    const halyard = createTestClient({ color: "blue" });
    const evaluationEvents = createEvaluationEvents({ logger, contextId: true });
    const provider = new HalyardProvider({ client: halyard, evaluationEvents });
    await OpenFeature.setProviderAndWait(provider, { targetingKey: "user-1" });
    jest.useFakeTimers();
    client.getStringValue("color", "black");
    halyard.set("color", "red");
    client.getStringValue("color", "black");
    jest.advanceTimersByTime(59_999);
    expect(emitted).toEqual([]);
    jest.advanceTimersByTime(1);
    expect(emitted.map((one) => one["feature_flag.result.variant"])).toEqual(["blue", "red"]);
    expect(emitted[0]).toHaveProperty(["feature_flag.context.id"], "user-1");
  });

  it("counts errors with the default", async () => {
    const evaluationEvents = createEvaluationEvents({ logger });
    const halyard = createTestClient({ color: "blue" });
    await OpenFeature.setProviderAndWait(
      new HalyardProvider({ client: halyard, evaluationEvents }),
    );
    client.getBooleanValue("missing", true);
    client.getNumberValue("color", 5);
    evaluationEvents.flush();
    expect(emitted).toMatchObject([
      {
        "feature_flag.key": "missing",
        "feature_flag.result.reason": "error",
        "feature_flag.result.value": true,
        "error.type": "flag_not_found",
        "feature_flag.error.message": "The environment has no flag with this key.",
      },
      { "feature_flag.key": "color", "error.type": "type_mismatch" },
    ]);
  });

  it("emits the counts when the page is hidden", () => {
    const page = Object.assign(new EventTarget(), { visibilityState: "visible" });
    Object.assign(globalThis, { document: page });
    const { finally: count } = createEvaluationEvents({ logger });
    count({ flagKey: "new-checkout", context: {} }, { value: true, flagMetadata: {} });
    page.dispatchEvent(new Event("visibilitychange"));
    expect(emitted).toEqual([]);
    page.visibilityState = "hidden";
    page.dispatchEvent(new Event("visibilitychange"));
    expect(emitted).toHaveLength(1);
  });
});

it("a provider without events has no hook", () => {
  expect(new HalyardProvider({ client: createTestClient() }).hooks).toEqual([]);
});
