import { type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { Edge } from "../../src/system/system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";
import { onThisMachine } from "../../src/traffic/promised-time.ts";
import {
  asContext,
  askEvaluate,
  askFlags,
  idBetween,
  type Said,
  type User,
  ways,
} from "../../src/traffic/users.ts";

/** Time within which changes must be in effect, as documented. */
const promisedMs = 1_000;

const germans = { attribute: "country", operator: "equals", value: "DE" };

export function describeTargeting({ system, gateway }: ClientSystem): void {
  const streams: EventStream[] = [];

  afterAll(() => {
    for (const stream of streams) stream.close();
  });

  const addresses = () => [gateway.url, ...system.edges.map(({ url }) => url)];

  type Flag = { id: string; key: string };

  /** Creates a flag that is on, and waits until every edge has it. */
  async function makeFlag(tenant: Tenant, key: string, settings: object): Promise<Flag> {
    const flag = await must(`${gateway.url}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      body: { key, name: key, enabled: true, ...settings },
    });
    await Promise.all(
      addresses().map((url) =>
        soon(`${url} has ${key}`, async () => {
          return (await askEvaluate(url, tenant.clientKey, key)).status === 200;
        }),
      ),
    );
    return { id: flag.id, key };
  }

  const change = (tenant: Tenant, flag: Flag, settings: object) =>
    must(`${gateway.url}/api/v1/flags/${flag.id}`, {
      method: "PATCH",
      key: tenant.serverKey,
      body: settings,
    });

  /** Waits without the documented time limit, which is asserted in one test only. */
  async function soon(because: string, question: () => Promise<boolean>): Promise<void> {
    await eventually(question, { because });
  }

  async function valueAt(url: string, key: string, flag: string, said?: Said): Promise<boolean> {
    const { body } = await askFlags(url, key, said);
    return body.flags?.[flag];
  }

  async function open(url: string, key: string, user: User): Promise<EventStream> {
    const stream = await openEventStream(`${url}/api/v1/sdk/stream`, {
      authorization: `Bearer ${key}`,
      ...asContext(user).headers,
    });
    streams.push(stream);
    await eventually(() => stream.events.some(({ event }) => event === "heartbeat"));
    return stream;
  }

  const sent = (stream: EventStream) =>
    stream.events.filter(({ event }) => event === "flags").map(({ data }) => data);

  describe("20 % of Germany", () => {
    const key = "germany";
    const inside = idBetween(key, 0, 20);
    const outside = idBetween(key, 20, 100);
    let tenant: Tenant;
    beforeAll(async () => {
      tenant = await createTenant(gateway.url, { name: "Germany" });
      await makeFlag(tenant, key, {
        targeting_rules: [{ conditions: [germans], rollout_percentage: 20 }],
      });
    });

    it.each(ways)("depends on the user, sent in %s", async (_way, say) => {
      for (const url of addresses()) {
        const value = (user: User) => valueAt(url, tenant.clientKey, key, say(user));
        expect(await value({ id: inside, country: "DE" })).toBe(true);
        expect(await value({ id: inside, country: "de" })).toBe(true);
        expect(await value({ id: outside, country: "DE" })).toBe(false);
        expect(await value({ id: inside, country: "FR" })).toBe(false);
        expect(await value({ id: inside, land: "DE" })).toBe(false);
      }
    });
  });

  describe("a change of the rules", () => {
    it("is in effect everywhere within the documented second", async () => {
      const tenant = await createTenant(gateway.url, { name: "Within a second" });
      const flag = await makeFlag(tenant, "prompt", {
        targeting_rules: [{ conditions: [germans] }],
      });
      const french = asContext({ id: "f", country: "FR" });
      await change(tenant, flag, {
        targeting_rules: [{ conditions: [{ ...germans, value: "FR" }] }],
      });
      const withinMs = await onThisMachine(promisedMs, () =>
        valueAt(addresses()[0] as string, tenant.clientKey, flag.key, french),
      );
      await Promise.all(
        addresses().map((url) =>
          eventually(() => valueAt(url, tenant.clientKey, flag.key, french), {
            withinMs,
            because: `${url} has the new rules`,
          }),
        ),
      );
    });
  });

  describe("a client that polls", () => {
    let tenant: Tenant;
    const keys = ["alpha", "beta", "gamma"];
    beforeAll(async () => {
      tenant = await createTenant(gateway.url, { name: "Polling" });
      await makeFlag(tenant, "alpha", { rollout_percentage: 50 });
      await makeFlag(tenant, "beta", { targeting_rules: [{ conditions: [germans] }] });
      await makeFlag(tenant, "gamma", {});
    });

    it("receives the same values and the same tag from every edge", async () => {
      for (let number = 0; number < 20; number += 1) {
        const said = asContext({ id: `someone-${number}`, country: number % 2 ? "DE" : "FR" });
        const answers = await Promise.all(
          addresses().map((url) => askFlags(url, tenant.clientKey, said)),
        );
        const [first] = answers;
        expect(Object.keys(first?.body.flags)).toEqual(keys);
        for (const { body, headers } of answers) {
          expect(body).toEqual(first?.body);
          expect(headers.get("etag")).toBe(first?.headers.get("etag"));
        }
      }
    });
  });

  describe("a client with a stream", () => {
    const german = { id: "g", country: "DE" };
    const french = { id: "f", country: "FR" };
    const rulesFor = (...countries: string[]) => ({
      targeting_rules: [{ conditions: [{ ...germans, operator: "in", value: countries }] }],
    });

    it("receives the effect of a change on its own values", async () => {
      const tenant = await createTenant(gateway.url, { name: "Both ways" });
      const flag = await makeFlag(tenant, "menu", rulesFor("DE"));
      const opened = await Promise.all(
        addresses().map(async (url) => ({
          forGerman: await open(url, tenant.clientKey, german),
          forFrench: await open(url, tenant.clientKey, french),
          withoutContext: await open(url, tenant.clientKey, {}),
        })),
      );
      await change(tenant, flag, rulesFor("FR"));
      for (const { forGerman, forFrench } of opened) {
        await eventually(() => sent(forGerman).length === 2 && sent(forFrench).length === 2);
        expect(sent(forGerman)).toEqual([{ flags: { menu: true } }, { flags: { menu: false } }]);
        expect(sent(forFrench)).toEqual([{ flags: { menu: false } }, { flags: { menu: true } }]);
      }
      await makeFlag(tenant, "new", {});
      for (const { withoutContext } of opened) {
        await eventually(() => sent(withoutContext).length > 1);
        expect(sent(withoutContext)).toEqual([
          { flags: { menu: false } },
          { flags: { new: true } },
        ]);
      }
    });
  });

  describe("an unavailable edge or NATS", () => {
    const rulesFor = (country: string) => ({
      targeting_rules: [{ conditions: [{ ...germans, value: country }], rollout_percentage: 50 }],
    });
    const key = "resilient";
    const id = idBetween(key, 0, 50);
    const outside = idBetween(key, 50, 100);

    it("uses the current rules after a restart, and the cached rules without NATS", async () => {
      const tenant = await createTenant(gateway.url, { name: "Away", plan: "unlimited" });
      const flag = await makeFlag(tenant, key, rulesFor("DE"));
      const [edge] = system.edges as [Edge];
      const value = (user: User) => valueAt(edge.url, tenant.clientKey, key, asContext(user));

      expect(await edge.process.stop()).toBe(0);
      await change(tenant, flag, rulesFor("FR"));
      await edge.start();
      await soon("the edge has the new rules", () => value({ id, country: "FR" }));
      expect(await value({ id, country: "DE" })).toBe(false);

      expect(await edge.process.stop()).toBe(0);
      await system.nats.kill();
      try {
        await edge.start();
        const etags = await Promise.all(
          system.edges.map(async ({ url }) => {
            const { status, headers, body } = await askFlags(
              url,
              tenant.clientKey,
              asContext({ id, country: "FR" }),
            );
            expect([status, body.flags[key]]).toEqual([200, true]);
            return headers.get("etag");
          }),
        );
        expect(new Set(etags).size).toBe(1);
        expect(await value({ id: outside, country: "FR" })).toBe(false);
        expect(await value({ id, country: "DE" })).toBe(false);
        const stream = await open(edge.url, tenant.clientKey, { id, country: "FR" });
        expect(sent(stream)).toEqual([{ flags: { [key]: true } }]);
      } finally {
        await system.nats.start();
      }
      await change(tenant, flag, rulesFor("DE"));
      await eventually(() => value({ id, country: "DE" }), {
        because: "the edge receives changes again",
      });
    });
  });
}
