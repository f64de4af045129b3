import { HalyardProvider } from "@halyard/openfeature-server";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { OpenFeature } from "@openfeature/server-sdk";
import {
  createFakeEdge,
  environmentId,
  projectId,
} from "../../server-sdk/test/support/fake-edge.ts";
import { serveEdge } from "../../server-sdk/test/support/serve-edge.ts";
import { serverKey } from "../../server-sdk/test/support/setup.ts";
import { evaluate } from "./evaluate.ts";
import { ofEachType, scenarioFlags, scenarios } from "./scenarios.ts";

const ignore = () => undefined;
const logger = { info: ignore, warn: ignore, error: ignore };
const sinceNewYear = {
  attribute: "since",
  operator: "gt",
  value: "2027-01-01T00:00:00Z",
} as const;

const edge = createFakeEdge();
for (const [key, settings] of Object.entries(scenarioFlags)) edge.change(key, settings);
edge.change("dependent-flag", { requires: [{ flag: "boolean-zero-flag", is: "on" }] });
edge.change("since-flag", { targeting_rules: [{ conditions: [sinceNewYear] }] });
const served = await serveEdge(edge);
afterAll(async () => {
  await OpenFeature.clearProviders();
  await served.stop();
});

const createProvider = (options: { serverKey?: string } = {}) =>
  new HalyardProvider({ baseUrl: served.url, serverKey, logger, ...options });

describe("given a provider that is ready", () => {
  const client = OpenFeature.getClient();
  beforeAll(() => OpenFeature.setProviderAndWait(createProvider()));

  it.each(scenarios)("$title ($section)", async (scenario) => {
    const { flagKey, expected } = scenario;
    const details = await evaluate(client, scenario);
    expect(details).toMatchObject({ flagKey, ...expected });
    expect(details.errorCode).toBe(expected.errorCode);
    expect(details.variant).toBe(expected.variant);
  });

  it("reports the source, the version and the flag set as metadata (1.4.14, 2.2.9)", async () => {
    const { flagMetadata } = await client.getBooleanDetails("boolean-flag", false);
    const flagSetId = `${projectId}/${environmentId}`;
    expect(flagMetadata).toEqual({ source: "stream", version: 1, flagSetId });
  });

  it("resolves an unmet requirement with the reason DEFAULT, and names the required flag", async () => {
    const details = await client.getBooleanDetails("dependent-flag", true);
    expect(details).toMatchObject({
      ...{ value: false, variant: "off", reason: "DEFAULT" },
      flagMetadata: { source: "stream", prerequisite: "boolean-zero-flag" },
    });
  });

  it("leaves the context of the application unchanged (Appendix B, @immutability)", async () => {
    const context = { targetingKey: "u-1", since: new Date("2027-01-31T09:00:00Z") };
    const copy = { ...context };
    await client.getBooleanDetails("since-flag", false, context);
    expect(context).toEqual(copy);
  });

  it("reads a date as its ISO 8601 text", async () => {
    const valueSince = (date: string) =>
      client.getBooleanValue("since-flag", false, { since: new Date(date) });
    expect(await valueSince("2027-01-31T09:00:00Z")).toBe(true);
    expect(await valueSince("2026-12-31T09:00:00Z")).toBe(false);
    expect(await valueSince("not a date")).toBe(false);
  });

  it("ignores an id beside the targeting key", async () => {
    const flagKey = "targeting-key-flag";
    const { context } = scenarios.find((one) => one.flagKey === flagKey) ?? {};
    const withIds = { ...context, id: "u-1", user_id: "u-2" };
    expect(await client.getBooleanValue(flagKey, false, withIds)).toBe(true);
  });
});

describe("given a provider that is not ready", () => {
  it.each(ofEachType)("returns the default of the type $type (1.7.6)", async (evaluation) => {
    const domain = `not ready: ${evaluation.type}`;
    const setting = OpenFeature.setProviderAndWait(domain, createProvider());
    expect(await evaluate(OpenFeature.getClient(domain), evaluation)).toMatchObject({
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
    const provider = createProvider({ serverKey: "hc_a_b" });
    await expect(OpenFeature.setProviderAndWait("fatal", provider)).rejects.toThrow("options");
  });

  it.each(ofEachType)("returns the default of the type $type (1.7.7)", async (evaluation) => {
    expect(await evaluate(OpenFeature.getClient("fatal"), evaluation)).toMatchObject({
      value: evaluation.fallback,
      reason: "ERROR",
      errorCode: "PROVIDER_FATAL",
    });
  });
});
