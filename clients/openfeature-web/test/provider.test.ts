import { type Client, createClient, createTestClient } from "@halyard/browser-sdk";
import { HalyardProvider, type HalyardProviderOptions } from "@halyard/openfeature-web";
import { eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import {
  type EvaluationContext,
  type EventDetails,
  OpenFeature,
  ProviderEvents,
  ProviderStatus,
} from "@openfeature/web-sdk";
import { createClientIn } from "../../browser-sdk/src/client.ts";
import { systemClock } from "../../browser-sdk/src/clock.ts";
import { clientKey, type FakeEdge, startFakeEdge } from "./fake-edge.ts";

const ignore = () => undefined;
const logger = { warn: ignore, error: ignore };
const inGermany = { attribute: "country", operator: "equals", value: "DE" } as const;
const german = { targetingKey: "u-1", country: "DE" };
const french = { targetingKey: "u-2", country: "FR" };

let edge: FakeEdge;
const ends: (() => void)[] = [];
beforeEach(async () => {
  edge = await startFakeEdge({ germany: { targeting_rules: [{ conditions: [inGermany] }] } });
});
afterEach(async () => {
  OpenFeature.clearHandlers();
  await OpenFeature.clearProviders();
  for (const end of ends.splice(0)) end();
  await edge.close();
});

/** Creates a client that waits only a few milliseconds between its attempts to connect. */
function createImpatientClient(): Client {
  const client = createClientIn(
    { page: undefined, clock: { ...systemClock, random: () => 0.01 } },
    { baseUrl: edge.url, clientKey, logger },
  );
  ends.push(client.close);
  return client;
}

/** A storage that outlives its page. */
function createStorage() {
  const items = new Map<string, string>();
  return {
    getItem: (name: string) => items.get(name) ?? null,
    setItem: (name: string, value: string) => void items.set(name, value),
  };
}

/** Opens a page: sets a provider for a user, and records all events from now on. */
function open(context: EvaluationContext, options: Partial<HalyardProviderOptions> = {}) {
  const client = OpenFeature.getClient();
  const events: { type: string; details: EventDetails | undefined }[] = [];
  const provider = new HalyardProvider({ baseUrl: edge.url, clientKey, logger, ...options });
  const setting = OpenFeature.setProviderAndWait(provider, context);
  for (const type of Object.values(ProviderEvents))
    client.addHandler(type, (details) => void events.push({ type, details }));
  return {
    client,
    events,
    setting,
    types: () => events.map(({ type }) => type),
    value: () => client.getBooleanValue("germany", false),
  };
}

describe("given a service that is available", () => {
  it("is ready after its initialization, with the user's values (1.7.3, 5.3.1)", async () => {
    const { client, types, setting, value } = open(german);
    expect(client.providerStatus).toBe(ProviderStatus.NOT_READY);
    await setting;
    expect(client.providerStatus).toBe(ProviderStatus.READY);
    expect(types()).toEqual(["PROVIDER_READY"]);
    expect(value()).toBe(true);
  });

  it("signals a change with its flags, and applies it (Appendix F, @configuration-change)", async () => {
    const { events, setting, value } = open(german);
    await setting;
    edge.change({ germany: { enabled: false } });
    await eventually(() => events.length > 1);
    expect(events[1]).toMatchObject({
      type: "PROVIDER_CONFIGURATION_CHANGED",
      details: { flagsChanged: ["germany"], providerName: "halyard" },
    });
    expect(value()).toBe(false);
  });

  it("reconciles with another user, whose values are no change of flags (2.6.1, 5.3.4)", async () => {
    const { client, types, setting, value } = open(german);
    await setting;
    const changing = OpenFeature.setContext(french);
    expect(client.providerStatus).toBe(ProviderStatus.RECONCILING);
    expect(value()).toBe(true);
    await changing;
    expect(client.providerStatus).toBe(ProviderStatus.READY);
    expect(value()).toBe(false);
    expect(types()).toEqual(["PROVIDER_READY", "PROVIDER_RECONCILING", "PROVIDER_CONTEXT_CHANGED"]);
  });

  it("signals a change that follows the change of the user", async () => {
    const { events, setting } = open(french);
    await setting;
    await OpenFeature.setContext(german);
    edge.change({ germany: { enabled: false } });
    await eventually(() => events.some(({ type }) => type === ProviderEvents.ConfigurationChanged));
  });

  it("has the values of the last of several users", async () => {
    const { setting, value } = open(german);
    await setting;
    await Promise.all([OpenFeature.setContext(french), OpenFeature.setContext(german)]);
    expect(value()).toBe(true);
  });

  it("gives hooks the name of the provider (2.1.1, 4.1.2)", async () => {
    const { client, setting } = open(german);
    await setting;
    const names: string[] = [];
    const before = ({ providerMetadata }: { providerMetadata: { name: string } }) =>
      void names.push(providerMetadata.name);
    client.getBooleanValue("germany", false, { hooks: [{ before }] });
    expect(names).toEqual(["halyard"]);
    expect(client.track("purchase")).toBeUndefined();
  });
});

describe("given a service that becomes unavailable", () => {
  it("is stale with the last values, and ready afterwards (Appendix F, @stale)", async () => {
    const { client, types, setting } = open(german, { client: createImpatientClient() });
    await setting;
    edge.rejectWith(503);
    await eventually(() => client.providerStatus === ProviderStatus.STALE);
    expect(client.getBooleanDetails("germany", false)).toMatchObject({
      value: true,
      reason: "STALE",
    });
    edge.rejectWith(undefined);
    await eventually(() => client.providerStatus === ProviderStatus.READY);
    expect(types()).toEqual(["PROVIDER_READY", "PROVIDER_STALE", "PROVIDER_READY"]);
  });
});

describe("given a service that is unavailable at the start", () => {
  const readyTimeoutMs = 50;

  it("reports an error without values, and becomes ready with the first ones (5.3.2)", async () => {
    edge.rejectWith(503);
    const halyard = createImpatientClient();
    const { client, setting, value } = open(german, { client: halyard, readyTimeoutMs });
    await expect(setting).rejects.toThrow("No values after 50 ms");
    expect(client.providerStatus).toBe(ProviderStatus.ERROR);
    expect(client.getBooleanDetails("germany", true)).toMatchObject({
      value: true,
      errorCode: "PROVIDER_NOT_READY",
    });
    edge.rejectWith(undefined);
    await eventually(() => client.providerStatus === ProviderStatus.READY);
    expect(value()).toBe(true);
  });

  it("is stale with the stored values of an earlier page", async () => {
    const storage = createStorage();
    await open(german, { storage }).setting;
    await OpenFeature.clearProviders();
    edge.rejectWith(503);
    const { client, setting } = open(german, { storage, readyTimeoutMs });
    await setting;
    await eventually(() => client.providerStatus === ProviderStatus.STALE);
    expect(client.getBooleanDetails("germany", false)).toMatchObject({
      value: true,
      reason: "CACHED",
      flagMetadata: { source: "cache" },
    });
  });
});

describe("given a key that the service rejects", () => {
  it("fails fatally without values (2.4.2.1, 1.7.5)", async () => {
    edge.rejectWith(401);
    const { client, setting } = open(german);
    await expect(setting).rejects.toMatchObject({ code: "PROVIDER_FATAL" });
    expect(client.providerStatus).toBe(ProviderStatus.FATAL);
  });

  it("continues with the values in memory if the key is revoked later", async () => {
    const { client, types, setting, value } = open(german, { client: createImpatientClient() });
    await setting;
    edge.rejectWith(401);
    await eventually(() => types().includes("PROVIDER_ERROR"));
    expect(client.providerStatus).toBe(ProviderStatus.ERROR);
    expect(value()).toBe(true);
  });
});

describe("given a provider that is closed", () => {
  it("closes the client that it has created, and can be set again (2.5.2)", async () => {
    const provider = new HalyardProvider({ baseUrl: edge.url, clientKey, logger });
    for (const attempt of ["first", "second"]) {
      await OpenFeature.setProviderAndWait(provider);
      expect([attempt, edge.openStreams()]).toEqual([attempt, 1]);
      await OpenFeature.clearProviders();
      await eventually(() => edge.openStreams() === 0);
    }
  });

  it("leaves the application's client open, and emits no more of its events", async () => {
    const client = createTestClient({ "new-checkout": true });
    const provider = new HalyardProvider({ client });
    const changes: unknown[] = [];
    provider.events.addHandler(ProviderEvents.ConfigurationChanged, (details) =>
      changes.push(details),
    );
    await provider.initialize();
    client.set("new-checkout", false);
    expect(changes).toHaveLength(1);
    await provider.onClose();
    await provider.onClose();
    client.set("new-checkout", true);
    expect(changes).toHaveLength(1);
  });
});

describe("given a client of the application", () => {
  function createOwn(): Client {
    const client = createClient({ baseUrl: edge.url, clientKey, logger, context: german });
    ends.push(client.close);
    return client;
  }

  it("keeps the client's context while OpenFeature has none", async () => {
    const { setting, value } = open({}, { client: createOwn() });
    await setting;
    expect(value()).toBe(true);
  });

  it("replaces the client's context by OpenFeature's", async () => {
    const client = createOwn();
    await client.ready();
    const { setting, value } = open(french, { client });
    await setting;
    expect(value()).toBe(false);
  });
});
