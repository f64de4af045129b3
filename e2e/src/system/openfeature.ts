import { type ServiceProcess, startServiceProcess } from "@halyard/testing";
import { OpenFeature } from "@openfeature/web-sdk";
import { EventSource } from "eventsource";
import type { ClientSystem } from "./client-system.ts";
import { awaitReady, type System, startSystem } from "./system.ts";
import { createTenant, must, type Tenant } from "./tenancy.ts";

/** A tenant of OpenFeature clients with flags of every kind. */
export type OpenFeatureTenant = ClientSystem & {
  tenant: Tenant;
  /** Changes a flag, and answers when that is done. */
  change(flagKey: string, fields: object): Promise<void>;
  /** Another edge, told what the system's own are told and more. */
  startEdge(settings: Record<string, string>): Promise<ServiceProcess>;
};

const streamTokenSecret = "what the tokens of the tests are signed with";

const inGermany = { attribute: "country", operator: "equals", value: "DE" };

const flags = [
  { key: "always", enabled: true },
  { key: "never", enabled: false },
  { key: "half", enabled: true, rollout_percentage: 50 },
  { key: "germany", enabled: true, targeting_rules: [{ conditions: [inGermany] }] },
];

const edgeSettings = { STREAM_TOKEN_SECRET: streamTokenSecret, LOG_LEVEL: "trace" };

export function startOpenFeatureSystem(): Promise<System> {
  return startSystem({
    managements: 1,
    edges: 2,
    settings: () => ({ "sdk-edge": edgeSettings, gateway: { LOG_LEVEL: "trace" } }),
  });
}

export async function createOpenFeatureTenant({
  system,
  gateway,
}: ClientSystem): Promise<OpenFeatureTenant> {
  const tenant = await createTenant(gateway.url, { name: "OpenFeature" });
  const ids = new Map<string, string>();
  const manage = (method: string, path: string, body: unknown) =>
    must(`${gateway.url}/api/v1/flags${path}`, { method, key: tenant.serverKey, body });
  for (const flag of flags) {
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

/** What a provider asked over HTTP, and what it was answered. */
export type Traffic = {
  fetch: typeof fetch;
  requests: readonly Exchange[];
};

export type Exchange = {
  url: URL;
  ifNoneMatch: string | null;
  status: number;
  /** How long the provider was told to ask nothing. */
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
 * Closes all pages. A provider whose answer comes after it was closed opens one more stream and never
 * closes it, so the streams are closed here, whoever opened them.
 */
export async function closePages(): Promise<void> {
  await OpenFeature.clearProviders();
  for (const stream of openedStreams.splice(0)) stream.close();
}

/** Every stream that was opened since `provideEventSource`, with its state as it is now. */
export const openedStreams: EventSource[] = [];

/**
 * Gives providers the `EventSource` that browsers have and Node.js has not. They take it from the
 * global object, and without it they open no stream.
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
