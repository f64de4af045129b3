import { type ServiceProcess, startServiceProcess } from "@halyard/testing";
import { OpenFeature } from "@openfeature/web-sdk";
import { EventSource } from "eventsource";
import type { ClientSystem } from "./client-system.ts";
import { awaitReady, type System, startSystem } from "./system.ts";
import { createTenant, must, type Tenant } from "./tenancy.ts";

/** A tenant with flags of every kind, for tests of OpenFeature clients. */
export type OpenFeatureTenant = ClientSystem & {
  tenant: Tenant;
  /** Changes a flag, and returns after the response. */
  change(flagKey: string, fields: object): Promise<void>;
  /** Starts another edge, with the settings of the system's edges and additional ones. */
  startEdge(settings: Record<string, string>): Promise<ServiceProcess>;
};

const streamTokenSecret = "secret that signs the stream tokens of tests";

const inGermany = { attribute: "country", operator: "equals", value: "DE" };

const flags = [
  { key: "always", enabled: true },
  { key: "never", enabled: false },
  { key: "half", enabled: true, rollout_percentage: 50 },
  { key: "germany", enabled: true, targeting_rules: [{ conditions: [inGermany] }] },
];

/** Flags of the other types. `own` has no variation for users who are out. */
const typedFlags = [
  {
    key: "color",
    value_type: "string",
    variations: [
      { key: "blue", value: "blue" },
      { key: "red", value: "red" },
    ],
    targeting_rules: [{ conditions: [inGermany] }],
  },
  { key: "limit", value_type: "number", variations: [{ key: "high", value: 2.5 }] },
  { key: "layout", value_type: "object", variations: [{ key: "wide", value: { columns: 3 } }] },
  {
    key: "own",
    value_type: "string",
    variations: [{ key: "only", value: "for Germany" }],
    targeting_rules: [{ conditions: [inGermany] }],
  },
];

const edgeSettings = { STREAM_TOKEN_SECRET: streamTokenSecret, LOG_LEVEL: "trace" };

export function startOpenFeatureSystem(): Promise<System> {
  return startSystem({
    managements: 1,
    edges: 2,
    settings: () => ({ "sdk-edge": edgeSettings, gateway: { LOG_LEVEL: "trace" } }),
  });
}

export async function createOpenFeatureTenant(
  { system, gateway }: ClientSystem,
  { withTypedFlags = false } = {},
): Promise<OpenFeatureTenant> {
  const tenant = await createTenant(gateway.url, { name: "OpenFeature" });
  const ids = new Map<string, string>();
  const manage = (method: string, path: string, body: unknown) =>
    must(`${gateway.url}/api/v1/flags${path}`, { method, key: tenant.serverKey, body });
  const typed = withTypedFlags ? typedFlags.map((flag) => ({ ...flag, enabled: true })) : [];
  for (const flag of [...flags, ...typed]) {
    const created = await manage("POST", "", { name: flag.key, ...flag });
    ids.set(flag.key, created.id);
  }
  return {
    system,
    gateway,
    tenant,
    change: (flagKey, fields) => manage("PATCH", `/${ids.get(flagKey)}`, fields),
    async startEdge(settings) {
      const edge = await startServiceProcess("sdk-edge", {
        NATS_URL: system.nats.url,
        ...edgeSettings,
        ...settings,
      });
      system.endsWithSystem(edge.kill);
      await awaitReady({ name: "another edge", process: edge });
      return edge;
    },
  };
}

/** The HTTP requests of a provider, and their responses. */
export type Traffic = {
  fetch: typeof fetch;
  requests: readonly Exchange[];
};

export type Exchange = {
  url: URL;
  ifNoneMatch: string | null;
  status: number;
  /** Time for which the provider must not send requests. */
  retryAfterMs: number;
  askedAtMs: number;
  answeredAtMs: number;
};

export function watchTraffic(): Traffic {
  const requests: Exchange[] = [];
  return {
    requests,
    async fetch(input, init) {
      const request = new Request(input, init);
      const askedAtMs = performance.now();
      const response = await fetch(request);
      requests.push({
        askedAtMs,
        answeredAtMs: performance.now(),
        retryAfterMs: Number(response.headers.get("retry-after")) * 1_000,
        url: new URL(request.url),
        ifNoneMatch: request.headers.get("if-none-match"),
        status: response.status,
      });
      return response;
    },
  };
}

/**
 * Closes all pages and streams. A provider that receives a response after it was closed opens another stream and never
 * closes it, so this closes all streams.
 */
export async function closePages(): Promise<void> {
  await OpenFeature.clearProviders();
  for (const stream of openedStreams.splice(0)) stream.close();
}

/** All streams that were opened since `provideEventSource`. */
export const openedStreams: EventSource[] = [];

/**
 * Provides the `EventSource` that browsers have and Node.js lacks. Providers read it from the global object, and open
 * no stream without it.
 */
export function provideEventSource(): void {
  class WatchedEventSource extends EventSource {
    constructor(url: string | URL) {
      super(url);
      openedStreams.push(this);
    }
  }
  Object.assign(globalThis, { EventSource: WatchedEventSource });
}
