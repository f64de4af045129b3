import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { OFREPProvider } from "@openfeature/ofrep-provider";
import { type Client, type EvaluationContext, OpenFeature } from "@openfeature/server-sdk";
import type { ClientSystem } from "../../src/system/client-system.ts";
import {
  createOpenFeatureTenant,
  type OpenFeatureTenant,
  type Traffic,
  watchTraffic,
} from "../../src/system/openfeature.ts";
import { expectRetryAfterHonoured } from "./expect-retry-after.ts";

/** The official provider for servers from npm. It evaluates one flag per request. */
let running: OpenFeatureTenant;
let client: Client;

let connected = 0;

async function connect(
  baseUrl: string,
  key: string,
): Promise<{ client: Client; traffic: Traffic }> {
  connected += 1;
  const domain = `domain-${connected}`;
  const traffic = watchTraffic();
  const provider = new OFREPProvider({
    baseUrl,
    headers: [["Authorization", `Bearer ${key}`]],
    fetchImplementation: traffic.fetch,
  });
  await OpenFeature.setProviderAndWait(domain, provider);
  return { client: OpenFeature.getClient(domain), traffic };
}

export function describeServerProvider(given: () => ClientSystem): void {
  beforeAll(async () => {
    running = await createOpenFeatureTenant(given());
    client = (await connect(running.gateway.url, running.tenant.serverKey)).client;
  });
  afterAll(() => OpenFeature.close());

  describe("given flags that exist", () => {
    it.each<[string, EvaluationContext, object]>([
      ["always", {}, { value: true, reason: "STATIC", variant: "on" }],
      ["never", {}, { value: false, reason: "DISABLED", variant: "off" }],
      ["germany", { country: "DE" }, { value: true, reason: "TARGETING_MATCH", variant: "on" }],
      ["germany", { country: "FR" }, { value: false, reason: "DEFAULT", variant: "off" }],
      ["germany", { address: { country: "DE" } }, { value: false, reason: "DEFAULT" }],
      ["half", {}, { value: false, reason: "SPLIT", variant: "off" }],
    ])("returns value, reason and variant (%s, %j)", async (flagKey, context, expected) => {
      const details = await client.getBooleanDetails(flagKey, !("value" in expected), context);
      expect(details).toMatchObject({ flagKey, ...expected });
      expect(details.errorCode).toBeUndefined();
    });

    it("includes half of the users in a rollout of 50 %, by their targeting keys", async () => {
      const users = Array.from({ length: 60 }, (_, index) => `user-${index}`);
      const values = await Promise.all(
        users.map((targetingKey) => client.getBooleanValue("half", false, { targetingKey })),
      );
      const inside = values.filter(Boolean).length;
      expect(inside).toBeGreaterThan(10);
      expect(inside).toBeLessThan(50);
    });

    it("accepts contexts with dates, numbers and lists", async () => {
      const context = { targetingKey: "u1", since: new Date(), age: 7, country: ["FR", "DE"] };
      expect(await client.getBooleanValue("germany", false, context)).toBe(true);
    });
  });

  describe("given evaluations that fail", () => {
    it("returns the default and FLAG_NOT_FOUND for an unknown flag", async () => {
      expect(await client.getBooleanDetails("unknown", true)).toMatchObject({
        value: true,
        reason: "ERROR",
        errorCode: "FLAG_NOT_FOUND",
      });
    });

    it("returns the default and TYPE_MISMATCH for a flag of another type", async () => {
      expect(await client.getStringDetails("always", "default")).toMatchObject({
        value: "default",
        reason: "ERROR",
        errorCode: "TYPE_MISMATCH",
      });
    });

    it("returns the default and INVALID_CONTEXT for an invalid targeting key", async () => {
      const context = { targetingKey: ["u1"] } as unknown as EvaluationContext;
      expect(await client.getBooleanDetails("always", false, context)).toMatchObject({
        value: false,
        reason: "ERROR",
        errorCode: "INVALID_CONTEXT",
      });
    });

    it("returns the default for an invalid key, and sends a request again the next time", async () => {
      const { client: stranger, traffic } = await connect(running.gateway.url, "nonsense");
      for (let times = 1; times <= 2; times += 1) {
        const details = await stranger.getBooleanDetails("always", false);
        expect(details).toMatchObject({ value: false, reason: "ERROR", errorCode: "GENERAL" });
        expect(traffic.requests.map(({ status }) => status)).toEqual(Array(times).fill(401));
      }
    });
  });

  describe("given a limit on requests", () => {
    it("sends no request until the requested time has passed", async () => {
      const edge = await running.startEdge({ SDK_REQUESTS_PER_SECOND: "0.25" });
      const { client: hasty, traffic } = await connect(edge.url, running.tenant.clientKey);
      const value = () => hasty.getBooleanValue("always", false);
      expect(await value()).toBe(true);
      expect(await value()).toBe(false);
      expect(traffic.requests.map(({ status }) => status)).toEqual([200, 429]);
      await eventually(value);
      expectRetryAfterHonoured(traffic.requests[1], traffic.requests[2]);
      expect(traffic.requests.map(({ status }) => status)).toEqual([200, 429, 200]);
    });
  });
}
