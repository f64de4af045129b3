import {
  type EventStream,
  eventually,
  openEventStream,
  type ServiceProcess,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { ClientSystem } from "../../src/system/client-system.ts";
import type { Edge, System } from "../../src/system/system.ts";
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
const atOnce = 16;

const germans = { attribute: "country", operator: "equals", value: "DE" };

export function describeTargeting(given: () => ClientSystem): void {
  let system: System;
  let gateway: ServiceProcess;
  const streams: EventStream[] = [];

  beforeAll(() => {
    ({ system, gateway } = given());
  });
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
          return (await askEvaluate(url, tenant.clientKey, { flag: key })).status === 200;
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

  async function reasonFor(tenant: Tenant, flag: string, user: User): Promise<[boolean, string]> {
    const { body } = await askEvaluate(gateway.url, tenant.clientKey, {
      flag,
      said: asContext(user),
    });
    expect(body.variation).toBe(body.value ? "on" : "off");
    return [body.value, body.reason];
  }

  async function open(
    url: string,
    key: string,
    { user, lastEventId }: { user: User; lastEventId?: string | undefined },
  ): Promise<EventStream> {
    const stream = await openEventStream(`${url}/api/v1/sdk/stream`, {
      authorization: `Bearer ${key}`,
      ...asContext(user).headers,
      ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
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

    it("is off for users without the required attributes", async () => {
      for (const url of addresses()) {
        expect(await valueAt(url, tenant.clientKey, key)).toBe(false);
        expect(await valueAt(url, tenant.clientKey, key, { method: "POST", body: {} })).toBe(false);
        expect(await valueAt(url, tenant.clientKey, key, { query: `user_id=${inside}` })).toBe(
          false,
        );
        expect(await valueAt(url, tenant.clientKey, key, asContext({ country: "DE" }))).toBe(false);
      }
    });

    it("is explained by its reason", async () => {
      expect(await reasonFor(tenant, key, { id: inside, country: "DE" })).toEqual([true, "split"]);
      expect(await reasonFor(tenant, key, { id: outside, country: "DE" })).toEqual([
        false,
        "split",
      ]);
      expect(await reasonFor(tenant, key, { id: inside, country: "AT" })).toEqual([
        false,
        "default",
      ]);
    });
  });

  describe("the same user sent in several ways", () => {
    const sources = ["body", "context", "header", "query"] as const;
    let tenant: Tenant;
    beforeAll(async () => {
      tenant = await createTenant(gateway.url, { name: "Precedence" });
      for (const attribute of ["id", "email", "plan"])
        for (const source of sources)
          await makeFlag(tenant, `${attribute}-by-${source}`, {
            targeting_rules: [{ conditions: [{ attribute, operator: "equals", value: source }] }],
          });
    });

    /** Returns which source was used for each attribute. */
    async function readFrom(said: Said): Promise<string[]> {
      const { body } = await askFlags(gateway.url, tenant.clientKey, said);
      return Object.keys(body.flags).filter((flag) => body.flags[flag]);
    }

    const all = (value: string) => ({ id: value, email: value, plan: value });
    const header = {
      "x-user-id": "header",
      "x-user-email": "header",
      "x-user-attributes": "plan=header,email=list,id=list",
    };
    const query = "user_id=query";

    it("is read in the order body, X-User-Context, other headers, query", async () => {
      const context = { "x-user-context": JSON.stringify(all("context")) };
      const said = { method: "POST", headers: { ...context, ...header }, query };
      expect(await readFrom({ ...said, body: all("body") })).toEqual([
        "email-by-body",
        "id-by-body",
        "plan-by-body",
      ]);
      expect(await readFrom({ ...said, body: {} })).toEqual([
        "email-by-context",
        "id-by-context",
        "plan-by-context",
      ]);
      expect(await readFrom({ headers: header, query })).toEqual([
        "email-by-header",
        "id-by-header",
        "plan-by-header",
      ]);
      expect(await readFrom({ query })).toEqual(["id-by-query"]);
    });

    it("is merged attribute by attribute", async () => {
      const headers = { ...header, "x-user-context": JSON.stringify({ email: "context" }) };
      expect(
        await readFrom({ method: "POST", headers, query, body: { user_id: "body", plan: null } }),
      ).toEqual(["email-by-context", "id-by-body", "plan-by-header"]);
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

  describe("a rollout that is raised", () => {
    it("excludes no user, and includes about the given percentage", async () => {
      const tenant = await createTenant(gateway.url, { name: "Raised" });
      const flag = await makeFlag(tenant, "gradual", { rollout_percentage: 10 });
      const ids = Array.from({ length: 1_000 }, (_, number) => `person-${number}`);

      async function insiders(): Promise<Set<string>> {
        const found = new Set<string>();
        const remaining = [...ids];
        const work = async () => {
          for (let id = remaining.pop(); id !== undefined; id = remaining.pop())
            if (await valueAt(gateway.url, tenant.clientKey, flag.key, asContext({ id })))
              found.add(id);
        };
        await Promise.all(Array.from({ length: atOnce }, work));
        return found;
      }

      const before = await insiders();
      await change(tenant, flag, { rollout_percentage: 35 });
      const newcomer = asContext({ id: idBetween(flag.key, 10, 35) });
      for (const url of addresses())
        await soon("the rollout is raised", () =>
          valueAt(url, tenant.clientKey, flag.key, newcomer),
        );
      const after = await insiders();

      expect([...before].filter((id) => !after.has(id))).toEqual([]);
      // Six standard deviations on each side.
      expect(before.size).toBeGreaterThan(100 - 57);
      expect(before.size).toBeLessThan(100 + 57);
      expect(after.size).toBeGreaterThan(350 - 90);
      expect(after.size).toBeLessThan(350 + 90);
    });
  });

  describe("ordered rules", () => {
    it("include staff always, and 5 % of everyone else", async () => {
      const tenant = await createTenant(gateway.url, { name: "Staff" });
      const key = "preview";
      await makeFlag(tenant, key, {
        targeting_rules: [
          {
            conditions: [{ attribute: "email", operator: "ends_with", value: "@example.com" }],
            rollout_percentage: 100,
          },
          { conditions: [], rollout_percentage: 5 },
        ],
      });
      const inside = idBetween(key, 0, 5);
      const outside = idBetween(key, 5, 100);
      const staff = "Ada@Example.COM";
      expect(await reasonFor(tenant, key, { email: staff })).toEqual([true, "targeting_match"]);
      expect(await reasonFor(tenant, key, { id: outside, email: staff })).toEqual([
        true,
        "targeting_match",
      ]);
      expect(await reasonFor(tenant, key, { id: inside })).toEqual([true, "split"]);
      expect(await reasonFor(tenant, key, { id: outside })).toEqual([false, "split"]);
      expect(await reasonFor(tenant, key, {})).toEqual([false, "split"]);
    });

    it("exclude users by a rule that denies, regardless of later rules", async () => {
      const tenant = await createTenant(gateway.url, { name: "Denied" });
      const key = "payments";
      await makeFlag(tenant, key, {
        rollout_percentage: 1,
        targeting_rules: [
          {
            conditions: [{ attribute: "country", operator: "in", value: "KP, IR" }],
            value: false,
          },
          { conditions: [{ attribute: "plan", operator: "in", value: ["pro", "enterprise"] }] },
          { conditions: [], rollout_percentage: 100 },
        ],
      });
      const outside = idBetween(key, 1, 100);
      expect(await reasonFor(tenant, key, { id: outside, country: "kp" })).toEqual([
        false,
        "targeting_match",
      ]);
      expect(await reasonFor(tenant, key, { id: outside, country: "DE", plan: "pro" })).toEqual([
        false,
        "split",
      ]);
      expect(await reasonFor(tenant, key, { id: outside, country: "DE" })).toEqual([
        true,
        "targeting_match",
      ]);
    });

    it("differ between environments", async () => {
      const tenant = await createTenant(gateway.url, { name: "Environments" });
      const key = "search";
      const rulesFor = (country: string) => ({
        enabled: true,
        targeting_rules: [{ conditions: [{ ...germans, value: country }] }],
      });
      const flag = await makeFlag(tenant, key, rulesFor("DE"));
      const otherState = `flags/${flag.id}/environments/${tenant.otherEnvironmentId}`;
      await must(`${gateway.url}/api/v1/${otherState}`, {
        method: "PATCH",
        key: tenant.serverKey,
        body: rulesFor("FR"),
      });
      const french = asContext({ country: "FR" });
      for (const url of addresses())
        await soon("the other environment has its own rules", () =>
          valueAt(url, tenant.otherServerKey, key, french),
        );
      expect(await valueAt(gateway.url, tenant.clientKey, key, french)).toBe(false);
      const german = asContext({ country: "DE" });
      expect(await valueAt(gateway.url, tenant.clientKey, key, german)).toBe(true);
      expect(await valueAt(gateway.url, tenant.otherServerKey, key, german)).toBe(false);
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

    it("has a tag that depends on its values, not on its identity", async () => {
      const inside = idBetween("alpha", 0, 50);
      const german = asContext({ id: inside, country: "DE" });
      const tagOf = async (said: Said) =>
        (await askFlags(gateway.url, tenant.clientKey, said)).headers.get("etag") as string;
      const etag = await tagOf(german);
      const anotherInside = idBetween("alpha", 20, 50);
      expect(await tagOf(asContext({ id: anotherInside, country: "de", plan: "pro" }))).toBe(etag);
      expect(await tagOf(asContext({ id: inside, country: "FR" }))).not.toBe(etag);
      expect(await tagOf({})).not.toBe(etag);
    });

    it("receives 304 as long as its own values are unchanged", async () => {
      const inside = idBetween("alpha", 0, 50);
      const german = { id: inside, country: "DE" };
      const { headers } = await askFlags(gateway.url, tenant.clientKey, asContext(german));
      const ifNoneMatch = { "if-none-match": headers.get("etag") as string };
      const statusFor = async (url: string, said: Said) => {
        const asked = { ...said, headers: { ...said.headers, ...ifNoneMatch } };
        return (await askFlags(url, tenant.clientKey, asked)).status;
      };
      for (const url of addresses()) {
        for (const [, say] of ways) expect(await statusFor(url, say(german))).toBe(304);
        expect(await statusFor(url, asContext({ ...german, country: "FR" }))).toBe(200);
        expect(await statusFor(url, {})).toBe(200);
      }
      expect(headers.get("vary")?.toLowerCase()).toContain("x-user-context");
    });
  });

  describe("a client with a stream", () => {
    const german = { id: "g", country: "DE" };
    const french = { id: "f", country: "FR" };
    const rulesFor = (...countries: string[]) => ({
      targeting_rules: [{ conditions: [{ ...germans, operator: "in", value: countries }] }],
    });
    const switched = { attribute: "switch", operator: "equals", value: "on" };

    it("receives its own values first, and then only changes for it", async () => {
      const tenant = await createTenant(gateway.url, { name: "Listening" });
      const flag = await makeFlag(tenant, "menu", rulesFor("DE"));
      const marker = await makeFlag(tenant, "marker", { enabled: false });
      for (const url of addresses()) {
        const [forGerman, forFrench] = await Promise.all([
          open(url, tenant.clientKey, { user: german }),
          open(url, tenant.clientKey, { user: french }),
        ]);
        expect(sent(forGerman)).toEqual([{ flags: { marker: false, menu: true } }]);
        expect(sent(forFrench)).toEqual([{ flags: { marker: false, menu: false } }]);

        await change(tenant, flag, rulesFor("DE", "FR"));
        await eventually(() => sent(forFrench).length === 2);
        await change(tenant, flag, rulesFor("FR"));
        await eventually(() => valuesOf(forGerman, "menu").at(-1) === false);
        await change(tenant, flag, { targeting_rules: [{ conditions: [switched] }] });
        await change(tenant, flag, rulesFor("DE"));
        // This change is for both clients and comes after all others, so both must have received everything.
        await change(tenant, marker, { enabled: true });
        for (const stream of [forGerman, forFrench])
          await eventually(() => JSON.stringify(sent(stream)).includes('"marker":true'));

        expect(valuesOf(forGerman, "menu")).toEqual([true, false, true]);
        expect(valuesOf(forFrench, "menu")).toEqual([false, true, false]);
        for (const stream of [forGerman, forFrench])
          for (const data of sent(stream).slice(1))
            expect(Object.keys((data as { flags: object }).flags)).toHaveLength(1);
        await change(tenant, marker, { enabled: false });
        await Promise.all(
          addresses().map((other) =>
            soon("the flag is off again", async () => {
              return (await valueAt(other, tenant.clientKey, "marker")) === false;
            }),
          ),
        );
      }
    });

    /** Returns the values that a stream has sent for one flag, in order. */
    function valuesOf(stream: EventStream, flag: string): boolean[] {
      return sent(stream)
        .map((data) => (data as { flags: Record<string, boolean> }).flags[flag])
        .filter((value) => value !== undefined);
    }

    it("receives the effect of a change on its own values", async () => {
      const tenant = await createTenant(gateway.url, { name: "Both ways" });
      const flag = await makeFlag(tenant, "menu", rulesFor("DE"));
      const opened = await Promise.all(
        addresses().map(async (url) => ({
          forGerman: await open(url, tenant.clientKey, { user: german }),
          forFrench: await open(url, tenant.clientKey, { user: french }),
          withoutContext: await open(url, tenant.clientKey, { user: {} }),
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

    it("does not receive known values again when it reconnects", async () => {
      const tenant = await createTenant(gateway.url, { name: "Coming back" });
      const flag = await makeFlag(tenant, "menu", rulesFor("DE"));
      const stream = await open(gateway.url, tenant.clientKey, { user: german });
      const lastEventId = stream.events.find(({ event }) => event === "flags")?.id;
      const { headers } = await askFlags(gateway.url, tenant.clientKey, asContext(german));
      expect(lastEventId).toBe(headers.get("etag"));
      stream.close();

      for (const url of addresses()) {
        const again = await open(url, tenant.clientKey, { user: german, lastEventId });
        const other = await open(url, tenant.clientKey, { user: french, lastEventId });
        expect(sent(again)).toEqual([]);
        expect(sent(other)).toEqual([{ flags: { menu: false } }]);
      }
      await change(tenant, flag, rulesFor("FR"));
      for (const url of addresses()) {
        await soon("the new rules are in effect", () =>
          valueAt(url, tenant.clientKey, "menu", asContext(french)),
        );
        const again = await open(url, tenant.clientKey, { user: german, lastEventId });
        expect(sent(again)).toEqual([{ flags: { menu: false } }]);
      }
    });
  });

  describe("an evaluation with its reason", () => {
    const key = "why";
    const secret = "nobody-may-read-this@example.org";
    let tenant: Tenant;
    beforeAll(async () => {
      tenant = await createTenant(gateway.url, { name: "Why" });
      await makeFlag(tenant, key, {
        targeting_rules: [
          {
            id: "r1",
            name: "Grown-ups of a country",
            conditions: [
              { attribute: "age", operator: "gte", value: 18 },
              { attribute: "email", operator: "ends_with", value: "@example.com" },
            ],
          },
          { id: "r2", conditions: [], rollout_percentage: 0 },
          { id: "r3", conditions: [germans] },
        ],
      });
      await makeFlag(tenant, "off", { enabled: false });
      await makeFlag(tenant, "plain", {});
    });

    it.each([
      ["off", false, "disabled"],
      ["plain", true, "static"],
      [key, false, "split"],
    ])("has the reason of the flag %s", async (flag, value, reason) => {
      expect(await reasonFor(tenant, flag, { id: "a" })).toEqual([value, reason]);
    });

    it("is explained for each condition to a server key, without user data", async () => {
      const said = asContext({ id: secret, email: secret, unasked: secret });
      const answer = await askEvaluate(gateway.url, tenant.serverKey, {
        flag: key,
        said,
        explain: true,
      });
      expect(answer.status).toBe(200);
      expect(answer.body).toEqual({
        key,
        value: false,
        variation: "off",
        reason: "split",
        trace: {
          enabled: true,
          rollout_percentage: 100,
          rules: [
            {
              index: 0,
              id: "r1",
              name: "Grown-ups of a country",
              reached: true,
              matched: false,
              conditions: [
                { attribute: "age", operator: "gte", held: false, obstacle: "attribute_missing" },
                { attribute: "email", operator: "ends_with", held: false },
              ],
            },
            {
              index: 1,
              id: "r2",
              reached: true,
              matched: true,
              inside_percentage: false,
              conditions: [],
            },
            { index: 2, id: "r3", reached: false, matched: false, conditions: [] },
          ],
        },
      });
      expect(JSON.stringify(answer.body)).not.toContain(secret);
    });

    it("is not explained to a client key", async () => {
      const { status, body } = await askEvaluate(gateway.url, tenant.clientKey, {
        flag: key,
        explain: true,
      });
      expect([status, body.error.code]).toEqual([403, "AUTH_002"]);
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
        const stream = await open(edge.url, tenant.clientKey, { user: { id, country: "FR" } });
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
