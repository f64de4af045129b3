import { createTestClient } from "@halyard/browser-sdk";
import { HalyardProvider } from "@halyard/openfeature-web";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { OpenFeature, ProviderEvents } from "@openfeature/web-sdk";
import { clientKey, startFakeEdge } from "./fake-edge.ts";

/** Flags with text, numbers and objects through the official SDK for web pages. */
const edge = await startFakeEdge({
  checkout: {},
  color: {
    value_type: "string",
    variations: [
      { key: "cold", value: "blue" },
      { key: "warm", value: "red" },
    ],
    serve: { variation: "cold" },
    off_variation: "warm",
    targeting_rules: [{ conditions: [{ attribute: "plan", operator: "equals", value: "pro" }] }],
  },
  ratio: {
    value_type: "number",
    variations: [{ key: "half", value: 0.5 }],
    serve: { variation: "half" },
    off_variation: null,
  },
  limits: {
    value_type: "object",
    variations: [{ key: "small", value: { seats: 5, regions: ["eu"] } }],
    serve: { variation: "small" },
    off_variation: null,
  },
  later: {
    enabled: false,
    value_type: "string",
    variations: [{ key: "only", value: "unused" }],
    serve: { variation: "only" },
    off_variation: null,
  },
});
const logger = { warn: () => undefined, error: () => undefined };
const client = OpenFeature.getClient();

beforeAll(() =>
  OpenFeature.setProviderAndWait(new HalyardProvider({ baseUrl: edge.url, clientKey, logger })),
);
beforeEach(() => OpenFeature.setContext({}));
afterAll(async () => {
  await OpenFeature.clearProviders();
  await edge.close();
});

describe("given a typed flag", () => {
  const resolved = { reason: "UNKNOWN", flagMetadata: { source: "stream" } };

  it("resolves a text with its variant (1.3.1.1, 1.4.3, 1.4.6)", () => {
    expect(client.getStringDetails("color", "green")).toMatchObject({
      ...resolved,
      ...{ value: "red", variant: "warm" },
    });
  });

  it("resolves a number", () => {
    expect(client.getNumberDetails("ratio", 1)).toMatchObject({
      ...resolved,
      ...{ value: 0.5, variant: "half" },
    });
  });

  it("resolves an object, which is frozen", () => {
    const details = client.getObjectDetails("limits", {});
    expect(details).toMatchObject({
      ...resolved,
      ...{ value: { seats: 5, regions: ["eu"] }, variant: "small" },
    });
    expect(Object.isFrozen(details.value)).toBe(true);
  });

  it("resolves an object for a default that is any JSON value", () => {
    expect(client.getObjectValue("limits", null)).toEqual({ seats: 5, regions: ["eu"] });
    expect(client.getObjectDetails("color", "green").errorCode).toBe("TYPE_MISMATCH");
  });

  it("resolves the variation of the user", async () => {
    await OpenFeature.setContext({ targetingKey: "u-1", plan: "pro" });
    expect(client.getStringDetails("color", "green")).toMatchObject({
      ...{ value: "blue", variant: "cold" },
    });
  });
});

describe("given a flag that leaves the value to the application", () => {
  it("resolves to the default, without a variant and without an error", () => {
    const details = client.getStringDetails("later", "green");
    expect(details).toMatchObject({ value: "green", reason: "DEFAULT" });
    expect(details.variant).toBeUndefined();
    expect(details.errorCode).toBeUndefined();
  });
});

describe("given a flag of another type", () => {
  const expected = { reason: "ERROR", errorCode: "TYPE_MISMATCH" };

  it.each(["color", "ratio", "limits"])("returns the default for %s as a boolean", (flagKey) => {
    expect(client.getBooleanDetails(flagKey, true)).toMatchObject({ ...expected, value: true });
  });

  it.each(["checkout", "ratio", "limits"])("returns the default for %s as a text", (flagKey) => {
    expect(client.getStringDetails(flagKey, "a")).toMatchObject({ ...expected, value: "a" });
  });

  it.each(["checkout", "color", "limits"])("returns the default for %s as a number", (flagKey) => {
    expect(client.getNumberDetails(flagKey, 7)).toMatchObject({ ...expected, value: 7 });
  });

  it.each(["checkout", "color", "ratio"])("returns the default for %s as an object", (flagKey) => {
    const value = { a: 1 };
    expect(client.getObjectDetails(flagKey, value)).toMatchObject({ ...expected, value });
  });
});

describe("given a change of a value", () => {
  it("signals the flag (5.3.5)", async () => {
    const changed: string[] = [];
    client.addHandler(ProviderEvents.ConfigurationChanged, (details) => {
      changed.push(...(details?.flagsChanged ?? []));
    });
    edge.change({
      ratio: {
        value_type: "number",
        variations: [{ key: "half", value: 0.25 }],
        serve: { variation: "half" },
        off_variation: null,
      },
    });
    await eventually(() => changed.length > 0);
    expect(changed).toEqual(["ratio"]);
    expect(client.getNumberValue("ratio", 1)).toBe(0.25);
  });
});

it("resolves the values of a test client", async () => {
  const testClient = createTestClient({ color: "blue", limits: { value: {}, variation: "none" } });
  const provider = new HalyardProvider({ client: testClient });
  await OpenFeature.setProviderAndWait("of a test", provider);
  const ofTest = OpenFeature.getClient("of a test");
  expect(ofTest.getStringValue("color", "green")).toBe("blue");
  expect(ofTest.getObjectDetails("limits", { a: 1 })).toMatchObject({ value: {}, variant: "none" });
});
