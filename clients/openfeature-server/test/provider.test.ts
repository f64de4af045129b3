import { HalyardProvider } from "@halyard/openfeature-server";
import { createTestClient } from "@halyard/server-sdk";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, it } from "@jest/globals";
import {
  type Client,
  type EventDetails,
  OpenFeature,
  ProviderEvents,
  ProviderStatus,
} from "@openfeature/server-sdk";
import {
  endAll,
  recordingLogger,
  type Setup,
  serverKey,
  setUp,
} from "../../server-sdk/test/support/setup.ts";

/** Events of the provider, such as `PROVIDER_STALE`, in their order. */
type Recorded = { type: string; details: EventDetails | undefined };

/** Sets a provider for a client with a clock that the test controls. Records all events from now on. */
function follow({ client: halyard }: Pick<Setup, "client">): {
  client: Client;
  events: Recorded[];
  setting: Promise<void>;
} {
  const client = OpenFeature.getClient();
  const events: Recorded[] = [];
  const setting = OpenFeature.setProviderAndWait(new HalyardProvider({ client: halyard }));
  for (const type of Object.values(ProviderEvents))
    client.addHandler(type, (details) => void events.push({ type, details }));
  return { client, events, setting };
}

const typesOf = (events: Recorded[]) => events.map(({ type }) => type);
const unavailable = { status: 503 };

/** Makes the service unavailable, until `behave` is called again. */
function stopServing({ edge }: Setup): void {
  edge.behave("stream", unavailable);
  edge.behave("poll", unavailable);
  edge.cutStreams();
}

afterEach(async () => {
  await endAll();
  OpenFeature.clearHandlers();
  await OpenFeature.clearProviders();
});

describe("given a service that is available", () => {
  it("is ready after its initialization (1.7.3, 5.3.1)", async () => {
    const { client, events, setting } = follow(await setUp());
    expect(client.providerStatus).toBe(ProviderStatus.NOT_READY);
    await setting;
    expect(client.providerStatus).toBe(ProviderStatus.READY);
    expect(typesOf(events)).toEqual(["PROVIDER_READY"]);
  });

  it("signals a change with its flags, and applies it (Appendix F, @configuration-change)", async () => {
    const setup = await setUp();
    const { client, events, setting } = follow(setup);
    await setting;
    setup.edge.change("new-checkout", { enabled: false });
    await eventually(() => events.length > 1);
    expect(events[1]).toMatchObject({
      type: "PROVIDER_CONFIGURATION_CHANGED",
      details: { flagsChanged: ["new-checkout"], providerName: "halyard" },
    });
    expect(await client.getBooleanValue("new-checkout", true)).toBe(false);
  });

  it("gives hooks the name of the provider (2.1.1, 4.1.2)", async () => {
    const { client, setting } = follow(await setUp());
    await setting;
    const names: string[] = [];
    const before = ({ providerMetadata }: { providerMetadata: { name: string } }) =>
      void names.push(providerMetadata.name);
    await client.getBooleanValue("new-checkout", false, {}, { hooks: [{ before }] });
    expect(names).toEqual(["halyard"]);
    expect(client.track("purchase")).toBeUndefined();
  });
});

describe("given a service that becomes unavailable", () => {
  it("is stale with the last flags, and ready afterwards (Appendix F, @stale)", async () => {
    const setup = await setUp();
    const { client, events, setting } = follow(setup);
    await setting;
    stopServing(setup);
    await eventually(() => setup.client.status.connection === "connecting");
    await setup.clock.run(20_000);
    expect(client.providerStatus).toBe(ProviderStatus.STALE);
    expect(await client.getBooleanValue("new-checkout", false)).toBe(true);

    setup.edge.behave("stream", "normal");
    await setup.clock.run(60_000);
    await eventually(() => client.providerStatus === ProviderStatus.READY);
    expect(typesOf(events)).toEqual(["PROVIDER_READY", "PROVIDER_STALE", "PROVIDER_READY"]);
  });
});

describe("given a service that is unavailable at the start", () => {
  it("reports an error without flags, and becomes ready with the first ones (5.3.2)", async () => {
    const setup = await setUp({}, (edge) => {
      edge.behave("stream", unavailable);
      edge.behave("poll", unavailable);
    });
    const { client, setting } = follow(setup);
    const rejected = expect(setting).rejects.toThrow("No flags after 5000 ms");
    await setup.clock.run(5_000);
    await rejected;
    expect(client.providerStatus).toBe(ProviderStatus.ERROR);
    expect(await client.getBooleanDetails("new-checkout", true)).toMatchObject({
      value: true,
      errorCode: "PROVIDER_NOT_READY",
    });

    setup.edge.behave("stream", "normal");
    await setup.clock.run(60_000);
    await eventually(() => client.providerStatus === ProviderStatus.READY);
    expect(await client.getBooleanValue("new-checkout", false)).toBe(true);
  });

  it("is stale with bootstrapped flags", async () => {
    const flag = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 1 };
    const bootstrap = { format: 2, environment_id: "e", flags: { "new-checkout": flag } };
    const setup = await setUp({ bootstrap }, (edge) => {
      edge.behave("stream", unavailable);
      edge.behave("poll", unavailable);
    });
    const { client, setting } = follow(setup);
    await setup.clock.run(5_000);
    await setting;
    await eventually(() => client.providerStatus === ProviderStatus.STALE);
    expect(await client.getBooleanDetails("new-checkout", false)).toMatchObject({
      value: true,
      flagMetadata: { source: "bootstrap" },
    });
  });
});

describe("given a key that the service rejects", () => {
  it("fails fatally without flags (2.4.2.1, 1.7.5)", async () => {
    const setup = await setUp({}, (edge) => edge.behave("stream", { status: 401 }));
    const { client, setting } = follow(setup);
    await expect(setting).rejects.toMatchObject({ code: "PROVIDER_FATAL" });
    expect(client.providerStatus).toBe(ProviderStatus.FATAL);
  });

  it("continues with the flags in memory if the key is revoked later", async () => {
    const setup = await setUp();
    const { client, events, setting } = follow(setup);
    await setting;
    setup.edge.behave("stream", { status: 401 });
    setup.edge.cutStreams();
    await eventually(() => setup.client.status.connection === "connecting");
    await setup.clock.run(10_000);
    await eventually(() => events.some(({ type }) => type === "PROVIDER_ERROR"));
    expect(client.providerStatus).toBe(ProviderStatus.ERROR);
    expect(await client.getBooleanValue("new-checkout", false)).toBe(true);
  });
});

describe("given a provider that is replaced", () => {
  it("closes the client that it has created, and can be set again (2.5.2)", async () => {
    const { edge, served, client } = await setUp();
    await client.close();
    const logger = recordingLogger([]);
    const provider = new HalyardProvider({ baseUrl: served.url, serverKey, logger });
    for (const attempt of ["first", "second"]) {
      await OpenFeature.setProviderAndWait(provider);
      expect([attempt, edge.openStreams]).toEqual([attempt, 1]);
      await OpenFeature.clearProviders();
      await eventually(() => edge.openStreams === 0);
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
    expect(client.status.connection).toBe("streaming");
  });
});
