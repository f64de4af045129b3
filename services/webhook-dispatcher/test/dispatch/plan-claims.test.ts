import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type Bounds,
  defaultBounds,
  type Lane,
  mayLinger,
  planClaims,
  type Slot,
  searchesFor,
} from "../../src/dispatch/plan-claims.ts";

const lane = (webhookId: string, fields: Partial<Lane> = {}): Lane => ({
  webhookId,
  organizationId: `of ${webhookId}`,
  slow: false,
  dueInMs: -1,
  ...fields,
});
const slot = (webhookId: string, kind: Slot["kind"], organizationId = `of ${webhookId}`): Slot => ({
  webhookId,
  organizationId,
  kind,
});
const many = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));
const claimsOf = (lanes: Lane[], slots: Slot[] = [], bounds: Bounds = defaultBounds) =>
  Object.fromEntries(
    planClaims(lanes, slots, bounds).map(({ webhookId, atMost }) => [webhookId, atMost]),
  );
const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);

describe("a webhook that has something due", () => {
  it("gets up to sixteen slots when nobody else wants any", () => {
    expect(claimsOf([lane("a")])).toEqual({ a: 16 });
    expect(
      claimsOf(
        [lane("a")],
        many(10, () => slot("a", "quick")),
      ),
    ).toEqual({ a: 6 });
  });

  it("gets none before its time", () => {
    expect(claimsOf([lane("a", { dueInMs: 1 })])).toEqual({});
  });

  it("shares what there is with the others in turns", () => {
    const claims = claimsOf(many(100, (index) => lane(`${index}`)));
    expect(sum(Object.values(claims))).toBe(192);
    expect(new Set(Object.values(claims))).toEqual(new Set([1, 2]));
  });

  it("comes before one that has attempts under way, and after one that has waited longer", () => {
    const busy = lane("busy", { dueInMs: -1_000 });
    const fresh = lane("fresh", { dueInMs: -1 });
    const older = lane("older", { dueInMs: -2 });
    const slots = [...many(190, (index) => slot(`${index}`, "quick")), slot("busy", "quick")];
    expect(claimsOf([busy, fresh, older], slots)).toEqual({ older: 1 });
  });

  it("gets one slot while it is slow", () => {
    expect(claimsOf([lane("a", { slow: true })])).toEqual({ a: 1 });
    expect(claimsOf([lane("a", { slow: true })], [slot("a", "slow")])).toEqual({});
  });

  it("gets nothing beside an attempt that lingers", () => {
    expect(claimsOf([lane("a")], [slot("a", "lingering")])).toEqual({});
  });

  it("is not held up by hundreds that linger, nor by hundreds that are slow", () => {
    const slots = [
      ...many(64, (index) => slot(`slow ${index}`, "slow")),
      ...many(700, (index) => slot(`hanging ${index}`, "lingering")),
    ];
    const slow = many(100, (index) => lane(`more ${index}`, { slow: true, dueInMs: -1_000 }));
    expect(claimsOf([...slow, lane("good")], slots)).toEqual({ good: 16 });
  });

  it("is not held up by four organizations whose many targets answer in time, but late", () => {
    const late = many(64, (index) => lane(`${index}`, { organizationId: `late ${index % 4}` }));
    // One webhook after the other, as their events come: each gets all that it can.
    const slots = late.reduce<Slot[]>((underWay, one) => {
      const [claim] = planClaims([one], underWay, defaultBounds);
      for (let begun = 0; begun < (claim?.atMost ?? 0); begun += 1) {
        const kind = mayLinger(underWay, defaultBounds) ? "lingering" : "quick";
        underWay.push(slot(one.webhookId, kind, one.organizationId));
      }
      return underWay;
    }, []);
    expect(slots).toHaveLength(4 * 64);
    expect(claimsOf([...late, lane("good")], slots)).toEqual({ good: 16 });
  });

  it("is not held up by the bound on what lingers, when it is reached", () => {
    const slots = many(768, (index) => slot(`${index}`, "lingering"));
    expect(mayLinger(slots, defaultBounds)).toBe(false);
    expect(claimsOf([lane("good")], slots)).toEqual({ good: 16 });
  });

  it("is not held up by another organization that has a lot to send", () => {
    const greedy = many(20, (index) => lane(`${index}`, { organizationId: "greedy" }));
    const claims = claimsOf([...greedy, lane("good", { dueInMs: 0 })]);
    expect(claims.good).toBe(16);
    delete claims.good;
    expect(sum(Object.values(claims))).toBe(64);
  });
});

describe("looking for what is due", () => {
  it("leaves out webhooks and organizations whose slots are taken", () => {
    const slots = [
      ...many(16, () => slot("full", "quick", "roomy")),
      ...many(63, (index) => slot(`${index}`, "quick", "full")),
      slot("late", "lingering", "full"),
      slot("lingers", "lingering", "roomy"),
    ];
    expect(searchesFor(slots, defaultBounds)).toMatchObject([
      { slow: false, exceptWebhooks: ["full", "late", "lingers"], exceptOrganizations: ["full"] },
      { slow: true, exceptOrganizations: [] },
    ]);
  });

  it("looks for no slow webhooks while their share is taken", () => {
    const slots = many(64, (index) => slot(`${index}`, "slow"));
    expect(searchesFor(slots, defaultBounds).map(({ slow }) => slow)).toEqual([false]);
  });
});

describe("whatever is due and under way", () => {
  const bounds: Bounds = {
    quick: { process: 12, organization: 6 },
    slow: { process: 4, organization: 2 },
    lingering: 4,
    webhook: 3,
  };
  const webhooks = many(12, (index) => ({
    webhookId: `${index}`,
    organizationId: `organization ${index % 4}`,
  }));
  const lanes = fc.subarray(webhooks).chain((chosen) =>
    fc.tuple(
      ...chosen.map((webhook) =>
        fc.record({
          webhookId: fc.constant(webhook.webhookId),
          organizationId: fc.constant(webhook.organizationId),
          slow: fc.boolean(),
          dueInMs: fc.integer({ min: -10, max: 3 }),
        }),
      ),
    ),
  );
  /** Only what bounded planning can have led to: claims of rounds before, some of which linger now. */
  const situations = fc
    .record({ before: lanes, lanes, ages: fc.infiniteStream(fc.boolean()) })
    .map(({ before, lanes, ages }) => {
      const slots = planClaims(before, [], bounds).flatMap(({ webhookId, atMost }) => {
        const found = before.find((one) => one.webhookId === webhookId);
        const kind = found?.slow ? "slow" : "quick";
        return many(atMost, () => slot(webhookId, kind, found?.organizationId));
      });
      for (const one of slots)
        if (one.kind === "quick" && ages.next().value && mayLinger(slots, bounds))
          one.kind = "lingering";
      const claims = planClaims(lanes, slots, bounds);
      const begun = claims.flatMap(({ webhookId, atMost }) => {
        const found = lanes.find((one) => one.webhookId === webhookId);
        return many(atMost, () =>
          slot(webhookId, found?.slow ? "slow" : "quick", found?.organizationId),
        );
      });
      return { lanes, slots, claims, begun, after: [...slots, ...begun] };
    });
  type Situation = typeof situations extends fc.Arbitrary<infer T> ? T : never;
  const always = (check: (situation: Situation) => void) =>
    fc.assert(fc.property(situations, check), { numRuns: 500 });
  const countOf = (slots: Slot[], test: (slot: Slot) => boolean) => slots.filter(test).length;

  it("no bound is passed", () =>
    always(({ after }) => {
      expect(countOf(after, ({ kind }) => kind === "lingering")).toBeLessThanOrEqual(
        bounds.lingering,
      );
      for (const { organizationId } of webhooks)
        expect(
          countOf(after, (one) => one.kind !== "slow" && one.organizationId === organizationId),
        ).toBeLessThanOrEqual(bounds.quick.organization);
      for (const kind of ["quick", "slow"] as const) {
        expect(countOf(after, (one) => one.kind === kind)).toBeLessThanOrEqual(
          bounds[kind].process,
        );
        for (const { organizationId } of webhooks)
          expect(
            countOf(after, (one) => one.kind === kind && one.organizationId === organizationId),
          ).toBeLessThanOrEqual(bounds[kind].organization);
      }
      for (const { webhookId } of webhooks)
        expect(countOf(after, (one) => one.webhookId === webhookId)).toBeLessThanOrEqual(
          bounds.webhook,
        );
    }));

  it("only what is due is claimed, once each webhook and at least one", () =>
    always(({ lanes, claims }) => {
      const due = lanes.filter(({ dueInMs }) => dueInMs <= 0).map(({ webhookId }) => webhookId);
      const claimed = claims.map(({ webhookId }) => webhookId);
      expect(new Set(claimed).size).toBe(claimed.length);
      expect(due).toEqual(expect.arrayContaining(claimed));
      expect(claims.every(({ atMost }) => atMost >= 1)).toBe(true);
    }));

  it("nothing is left that could be claimed: planning again with what was begun claims nothing", () =>
    always(({ lanes, after }) => {
      expect(planClaims(lanes, after, bounds)).toEqual([]);
    }));

  it("what could be served is looked for", () =>
    always(({ slots, claims, lanes }) => {
      const searches = searchesFor(slots, bounds);
      for (const { webhookId } of claims) {
        const found = lanes.find((one) => one.webhookId === webhookId);
        const search = searches.find(({ slow }) => slow === found?.slow);
        expect(search).toBeDefined();
        expect(search?.exceptWebhooks).not.toContain(webhookId);
        expect(search?.exceptOrganizations).not.toContain(found?.organizationId);
      }
    }));
});
