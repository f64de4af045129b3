import { HalyardProvider } from "@halyard/openfeature-web";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import {
  type Client,
  type EvaluationDetails,
  type JsonValue,
  OpenFeature,
} from "@openfeature/web-sdk";
import {
  type Evaluation,
  ofEachType,
  scenarioFlags,
  scenarios,
} from "../../openfeature-server/test/scenarios.ts";
import { clientKey, startFakeEdge } from "./fake-edge.ts";

const ignore = () => undefined;
const logger = { warn: ignore, error: ignore };
const flagOfDates = {
  targeting_rules: [
    { conditions: [{ attribute: "since", operator: "gt", value: "2027-01-01T00:00:00Z" }] },
  ],
} as const;

const edge = await startFakeEdge({ ...scenarioFlags, "since-flag": flagOfDates });
afterAll(async () => {
  await OpenFeature.clearProviders();
  await edge.close();
});

const createProvider = (options: { clientKey?: string } = {}) =>
  new HalyardProvider({ baseUrl: edge.url, clientKey, logger, ...options });

/** Evaluates a flag with the method for its type. */
function evaluate(
  client: Client,
  { type, flagKey, fallback }: Evaluation,
): EvaluationDetails<JsonValue> {
  switch (type) {
    case "boolean":
      return client.getBooleanDetails(flagKey, fallback as boolean);
    case "string":
      return client.getStringDetails(flagKey, fallback as string);
    case "number":
      return client.getNumberDetails(flagKey, fallback as number);
    case "object":
      return client.getObjectDetails(flagKey, fallback);
  }
}

describe("given a provider that is ready", () => {
  const client = OpenFeature.getClient();
  beforeAll(() => OpenFeature.setProviderAndWait(createProvider()));

  // Edges send values without reasons to pages. A page only knows that no variation is served.
  it.each(scenarios)("$title ($section)", async (scenario) => {
    const { flagKey, context = {}, expected } = scenario;
    await OpenFeature.setContext(context);
    const details = evaluate(client, scenario);
    const ofValue = expected.variant === undefined ? "DEFAULT" : "UNKNOWN";
    const reason = expected.errorCode === undefined ? ofValue : "ERROR";
    expect(details).toMatchObject({ flagKey, ...expected, reason });
    expect(details.errorCode).toBe(expected.errorCode);
  });

  it("reports the source of the values as metadata (1.4.14, 2.2.9)", () => {
    const { flagMetadata } = client.getBooleanDetails("boolean-flag", false);
    expect(flagMetadata).toEqual({ source: "stream" });
  });

  it("sends a date as its ISO 8601 text", async () => {
    const valueSince = async (date: string) => {
      await OpenFeature.setContext({ since: new Date(date) });
      return client.getBooleanValue("since-flag", false);
    };
    expect(await valueSince("2027-01-31T09:00:00Z")).toBe(true);
    expect(await valueSince("2026-12-31T09:00:00Z")).toBe(false);
    expect(await valueSince("not a date")).toBe(false);
  });

  it("ignores an id beside the targeting key", async () => {
    const flagKey = "targeting-key-flag";
    const { context } = scenarios.find((one) => one.flagKey === flagKey) ?? {};
    await OpenFeature.setContext({ ...context, id: "u-1", user_id: "u-2" });
    expect(client.getBooleanValue(flagKey, false)).toBe(true);
  });

  it.each(["__proto__", "constructor"])("has no flag %s", (flagKey) => {
    expect(client.getBooleanDetails(flagKey, true).errorCode).toBe("FLAG_NOT_FOUND");
  });
});

describe("given a provider that is not ready", () => {
  it.each(ofEachType)("returns the default of the type $type (1.7.6)", async (evaluation) => {
    const domain = `not ready: ${evaluation.type}`;
    const setting = OpenFeature.setProviderAndWait(domain, createProvider());
    expect(evaluate(OpenFeature.getClient(domain), evaluation)).toMatchObject({
      value: evaluation.fallback,
      reason: "ERROR",
      errorCode: "PROVIDER_NOT_READY",
    });
    await setting;
  });
});

it("a provider without options is fatal, with one line in the log", async () => {
  const onConsole = jest.spyOn(console, "error").mockReturnValue();
  const setting = OpenFeature.setProviderAndWait("none", new HalyardProvider(undefined as never));
  await expect(setting).rejects.toMatchObject({ code: "PROVIDER_FATAL" });
  expect(onConsole).toHaveBeenCalledTimes(1);
  onConsole.mockRestore();
});

describe("given a provider in a fatal state", () => {
  beforeAll(async () => {
    const provider = createProvider({ clientKey: "hs_a_b" });
    await expect(OpenFeature.setProviderAndWait("fatal", provider)).rejects.toThrow("options");
  });

  it.each(ofEachType)("returns the default of the type $type (1.7.7)", (evaluation) => {
    expect(evaluate(OpenFeature.getClient("fatal"), evaluation)).toMatchObject({
      value: evaluation.fallback,
      reason: "ERROR",
      errorCode: "PROVIDER_FATAL",
    });
  });
});
