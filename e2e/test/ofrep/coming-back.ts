import { call, eventually } from "@halyard/testing";
import { afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import { OFREPWebProvider } from "@openfeature/ofrep-web-provider";
import { type Client, OpenFeature, type Provider } from "@openfeature/web-sdk";
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
import type { Edge } from "../../src/system/system.ts";
import { must, operatorToken } from "../../src/system/tenancy.ts";
import { onThisMachine } from "../../src/traffic/promised-time.ts";
import { inOneHour } from "./in-one-hour.ts";

/** Tests of pages with the official web provider that lose their stream, or that are opened again. */
let running: OpenFeatureTenant;

/** Provides an empty `localStorage`, which Node.js has only with a file. */
function provideLocalStorage(): void {
  const kept = new Map<string, string>();
  const localStorage = {
    getItem: (name: string) => kept.get(name) ?? null,
    setItem: (name: string, value: string) => void kept.set(name, value),
    removeItem: (name: string) => void kept.delete(name),
  };
  Object.defineProperty(globalThis, "localStorage", { value: localStorage, configurable: true });
}

async function openPage(
  domain: string,
  key = running.tenant.clientKey,
): Promise<{ client: Client; traffic: Traffic }> {
  const traffic = watchTraffic();
  const provider = new OFREPWebProvider({
    baseUrl: running.gateway.url,
    headers: [["Authorization", `Bearer ${key}`]],
    fetchImplementation: traffic.fetch,
  });
  await OpenFeature.setContext(domain, { targetingKey: "u1", country: "DE" });
  await OpenFeature.setProviderAndWait(domain, provider as Provider);
  return { client: OpenFeature.getClient(domain), traffic };
}

const streamIsOpen = () => eventually(() => openedStreams.at(-1)?.readyState === 1);

async function edgeOfTheStream(): Promise<Edge> {
  for (const edge of running.system.edges) {
    const metrics = await fetch(`${edge.process.metricsUrl}/metrics`);
    if (/^halyard_streams_open(?:\{[^\n]*\})? 1$/m.test(await metrics.text())) return edge;
  }
  throw new Error("the stream is on one of the edges");
}

export function describeComingBack(given: () => ClientSystem): void {
  beforeAll(async () => {
    provideEventSource();
    provideLocalStorage();
    running = await createOpenFeatureTenant(given());
  });
  afterEach(closePages);

  describe("given a page that is opened again", () => {
    it(
      "starts with its last values, revalidates them, and opens a stream",
      inOneHour(async () => {
        provideLocalStorage();
        const first = await openPage("page");
        expect(first.client.getBooleanDetails("germany", false)).toMatchObject({
          value: true,
          reason: "TARGETING_MATCH",
        });
        await OpenFeature.clearProviders();

        const again = await openPage("page");
        expect(again.client.getBooleanDetails("germany", false)).toMatchObject({
          value: true,
          reason: "CACHED",
        });
        await eventually(() => again.traffic.requests.length === 1);
        expect(again.traffic.requests[0]?.status).toBe(304);
        await streamIsOpen();
        await running.change("never", { enabled: true });
        await eventually(() => again.client.getBooleanValue("never", false));
        await running.change("never", { enabled: false });
      }),
    );
  });

  describe("given a page whose edge dies", () => {
    it("reconnects to another edge, and receives the changes that it missed", async () => {
      const { client, traffic } = await openPage("survivor");
      await streamIsOpen();
      const edge = await edgeOfTheStream();
      const [other] = running.system.edges.filter((each) => each !== edge) as [Edge];
      // Ensures that the change precedes the reconnection of the page.
      other.process.signal("SIGSTOP");
      try {
        await edge.process.kill();
        await eventually(() => openedStreams.at(-1)?.readyState === 0);
        await running.change("always", { enabled: false });
        expect(client.getBooleanValue("always", false)).toBe(true);
      } finally {
        other.process.signal("SIGCONT");
      }
      await eventually(() => !client.getBooleanValue("always", true));
      expect(openedStreams).toHaveLength(1);
      expect(traffic.requests.map(({ status }) => status)).not.toContain(503);
      await edge.start();
      await running.change("always", { enabled: true });
      await eventually(() => client.getBooleanValue("always", false));
    });
  });

  describe("given a page whose key is revoked", () => {
    it("loses its stream within a second, gets no other one, and keeps its last values", async () => {
      const { projectId, environmentId, userId } = running.tenant;
      const keys = `${running.gateway.url}/api/v1/projects/${projectId}/environments/${environmentId}/keys`;
      const issued = await must(keys, {
        method: "POST",
        key: operatorToken,
        body: { kind: "client", name: "brief", user_id: userId },
      });
      for (const { url } of running.system.edges)
        await eventually(
          async () => (await call(`${url}/api/v1/sdk/flags`, { key: issued.key })).status === 200,
        );
      const { client, traffic } = await openPage("revoked", issued.key);
      await streamIsOpen();
      const address = openedStreams.at(-1)?.url as string;
      await must(`${keys}/${issued.id}`, { method: "DELETE", key: operatorToken });
      const withinMs = await onThisMachine(1_000, () => fetch(`${running.gateway.url}/healthz`));
      await eventually(() => openedStreams.at(-1)?.readyState !== 1, { withinMs });
      expect((await call(address)).status).toBe(401);
      await eventually(() => openedStreams.every(({ readyState }) => readyState === 2));
      await eventually(() => traffic.requests.at(-1)?.status === 401);
      expect(client.getBooleanValue("germany", false)).toBe(true);
    });
  });
}
