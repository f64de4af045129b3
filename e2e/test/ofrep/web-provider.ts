import { eventually } from "@halyard/testing";
import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { OFREPWebProvider, type OFREPWebProviderOptions } from "@openfeature/ofrep-web-provider";
import {
  type Client,
  type EvaluationContext,
  OpenFeature,
  type Provider,
  ProviderEvents,
  ProviderStatus,
} from "@openfeature/web-sdk";
import type { ClientSystem } from "../../src/system/client-system.ts";
import {
  closePages,
  createOpenFeatureTenant,
  type OpenFeatureTenant,
  openedStreams,
  provideEventSource,
  type Traffic,
  watchTraffic,
} from "../../src/system/openfeature.ts";
import { expectRetryAfterHonoured } from "./expect-retry-after.ts";
import { inOneHour } from "./in-one-hour.ts";

/**
 * The official provider for browsers from npm. It evaluates all flags in one request, and again when a stream requests
 * it.
 */
let running: OpenFeatureTenant;

type Connected = {
  client: Client;
  domain: string;
  traffic: Traffic;
  /** The flags in each event of a changed configuration. */
  changes: (readonly string[])[];
};

let connected = 0;

async function connect(
  context: EvaluationContext,
  options: Partial<OFREPWebProviderOptions> & { key?: string } = {},
): Promise<Connected> {
  const { key = running.tenant.clientKey, ...others } = options;
  connected += 1;
  const domain = `domain-${connected}`;
  const traffic = watchTraffic();
  const provider = new OFREPWebProvider({
    baseUrl: running.gateway.url,
    headers: [["Authorization", `Bearer ${key}`]],
    fetchImplementation: traffic.fetch,
    cacheMode: "disabled",
    ...others,
  });
  const client = OpenFeature.getClient(domain);
  const changes: (readonly string[])[] = [];
  client.addHandler(ProviderEvents.ConfigurationChanged, (details) => {
    changes.push([...(details?.flagsChanged ?? [])].sort());
  });
  await OpenFeature.setContext(domain, context);
  // Its declarations are less strict than this compiler requires.
  await OpenFeature.setProviderAndWait(domain, provider as Provider);
  return { client, domain, traffic, changes };
}

const statuses = ({ traffic }: Connected) => traffic.requests.map(({ status }) => status);
const streamsOpen = (count: number) =>
  eventually(() => openedStreams.filter((stream) => stream.readyState === 1).length === count);

export function describeWebProvider(given: () => ClientSystem): void {
  beforeAll(async () => {
    provideEventSource();
    running = await createOpenFeatureTenant(given());
  });
  afterEach(closePages);

  describe("given a page that has just started", () => {
    it("has all values, reasons and variants after one request", async () => {
      const page = await connect({ targetingKey: "u1", country: "DE" });
      expect(statuses(page)).toEqual([200]);
      expect(page.client.getBooleanDetails("always", false)).toMatchObject({
        value: true,
        reason: "STATIC",
        variant: "on",
      });
      expect(page.client.getBooleanDetails("never", true)).toMatchObject({
        value: false,
        reason: "DISABLED",
        variant: "off",
      });
      expect(page.client.getBooleanDetails("germany", false)).toMatchObject({
        value: true,
        reason: "TARGETING_MATCH",
      });
      expect(page.client.getBooleanDetails("half", false)).toMatchObject({ reason: "SPLIT" });
      expect(statuses(page)).toEqual([200]);
    });

    it("returns the default for unknown flags and for flags of another type", async () => {
      const { client } = await connect({ targetingKey: "u1" });
      expect(client.getBooleanDetails("unknown", true)).toMatchObject({
        value: true,
        errorCode: "FLAG_NOT_FOUND",
      });
      expect(client.getStringDetails("always", "default")).toMatchObject({
        value: "default",
        errorCode: "TYPE_MISMATCH",
      });
    });

    it("opens the stream at the origin of its requests", async () => {
      await connect({ targetingKey: "u1" });
      await streamsOpen(1);
      expect(new URL(openedStreams[0]?.url as string).origin).toBe(running.gateway.url);
    });
  });

  describe("given another user", () => {
    it("sends a new request and has that user's values, on the same stream", async () => {
      const page = await connect({ targetingKey: "u1", country: "FR" });
      await streamsOpen(1);
      expect(page.client.getBooleanValue("germany", true)).toBe(false);
      await OpenFeature.setContext(page.domain, { targetingKey: "u2", country: "DE" });
      expect(page.client.getBooleanValue("germany", false)).toBe(true);
      expect(page.traffic.requests.at(-1)).toMatchObject({ status: 200, ifNoneMatch: null });
      expect(openedStreams).toHaveLength(1);
    });

    it(
      "receives 304 when another attribute changes no value",
      inOneHour(async () => {
        const page = await connect({ targetingKey: "u1", country: "DE" });
        await OpenFeature.setContext(page.domain, { targetingKey: "u1", country: "de" });
        expect(statuses(page)).toEqual([200, 304]);
        expect(page.client.getBooleanValue("germany", false)).toBe(true);
        await OpenFeature.setContext(page.domain, { targetingKey: "u1", country: "FR" });
        expect(statuses(page)).toEqual([200, 304, 200]);
        expect(page.client.getBooleanValue("germany", true)).toBe(false);
      }),
    );
  });

  describe("given a change of a flag", () => {
    it("has the new value and reports the flag, with a request caused by the stream", async () => {
      const page = await connect({ targetingKey: "u1", country: "DE" });
      await streamsOpen(1);
      const before = page.client.getBooleanValue("always", false);
      await running.change("always", { enabled: !before });
      await eventually(() => page.client.getBooleanValue("always", before) === !before);
      await eventually(() => page.changes.some((flags) => flags.includes("always")));
      const refetch = page.traffic.requests.at(-1);
      expect(refetch?.url.searchParams.get("flagConfigEtag")).toMatch(/^[0-9a-z]+-[\w-]{22}$/);
      expect(refetch?.ifNoneMatch).not.toBeNull();
      await running.change("always", { enabled: true });
      await eventually(() => page.client.getBooleanValue("always", false));
    });

    it(
      "sends a request, receives 304 if nothing has changed for this user, and reports no change",
      inOneHour(async () => {
        const page = await connect({ targetingKey: "u1", country: "DE" });
        await streamsOpen(1);
        // A different value each time, in case the test is repeated.
        const inPoland = { attribute: "country", operator: "in", value: `DE, PL, ${connected}` };
        await running.change("germany", { targeting_rules: [{ conditions: [inPoland] }] });
        await eventually(() => page.traffic.requests.at(-1)?.status === 304);
        expect(page.changes).toEqual([]);
        expect(page.client.getBooleanValue("germany", false)).toBe(true);
      }),
    );

    it("reaches many pages, each with its own values", async () => {
      const countries = ["DE", "FR", "PL", "US"];
      const pages = await Promise.all(
        countries.map((country) => connect({ targetingKey: country, country })),
      );
      await streamsOpen(pages.length);
      const inUsa = { attribute: "country", operator: "equals", value: "US" };
      await running.change("germany", { targeting_rules: [{ conditions: [inUsa] }] });
      for (const [index, page] of pages.entries())
        await eventually(
          () => page.client.getBooleanValue("germany", false) === (countries[index] === "US"),
        );
    });
  });

  describe("given a page that polls", () => {
    it(
      "receives 304 as long as nothing changes, and then the new values",
      inOneHour(async () => {
        const page = await connect(
          { targetingKey: "u1" },
          { changeDetection: "polling", pollInterval: 50 },
        );
        await eventually(() => statuses(page).length >= 4);
        expect(statuses(page).slice(1, 4)).toEqual([304, 304, 304]);
        expect(page.changes).toEqual([]);
        await running.change("never", { enabled: true });
        await eventually(() => page.client.getBooleanValue("never", false));
        await eventually(() => page.changes.length > 0);
        expect(page.changes).toEqual([["never"]]);
        await running.change("never", { enabled: false });
      }),
    );
  });

  describe("given an invalid key", () => {
    it("fails immediately", async () => {
      const domain = `domain-${connected + 1}`;
      await expect(connect({ targetingKey: "u1" }, { key: "nonsense" })).rejects.toThrow();
      const client = OpenFeature.getClient(domain);
      expect(client.providerStatus).toBe(ProviderStatus.FATAL);
      expect(client.getBooleanDetails("always", false)).toMatchObject({
        value: false,
        errorCode: "PROVIDER_FATAL",
      });
    });
  });

  describe("given a limit on requests", () => {
    it(
      "sends no request until the requested time has passed",
      inOneHour(async () => {
        const edge = await running.startEdge({ SDK_REQUESTS_PER_SECOND: "0.25" });
        const page = await connect(
          { targetingKey: "u1" },
          { baseUrl: edge.url, changeDetection: "polling", pollInterval: 50 },
        );
        await eventually(() => statuses(page).includes(429));
        expect(page.client.getBooleanValue("always", false)).toBe(true);
        await eventually(() => statuses(page).length === 3);
        expectRetryAfterHonoured(page.traffic.requests[1], page.traffic.requests[2]);
        expect(statuses(page).slice(0, 3)).toEqual([200, 429, 304]);
      }),
    );
  });

  describe("given the logs of all processes", () => {
    it("contain no token of a stream", async () => {
      await connect({ targetingKey: "u1" });
      await streamsOpen(1);
      const token = new URL(openedStreams[0]?.url as string).searchParams.get("token") as string;
      expect(token.length).toBeGreaterThan(60);
      const logs = [running.gateway, ...running.system.edges.map(({ process }) => process)];
      for (const each of logs) {
        expect(each.log()).not.toContain("token=");
        expect(each.log()).not.toContain(token.slice(0, 24));
      }
    });
  });
}
