import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  type Bounds,
  defaultBounds,
  type Lane,
  planClaims,
  type RunningAttempt,
  searchesFor,
} from "../../src/dispatch/plan-claims.ts";

const lane = (webhookId: string, fields: Partial<Lane> = {}): Lane => ({
  webhookId,
  organizationId: `of ${webhookId}`,
  slow: false,
  dueInMs: -1,
  ...fields,
});
const attempt = (
  webhookId: string,
  kind: RunningAttempt["kind"],
  organizationId = `of ${webhookId}`,
): RunningAttempt => ({
  webhookId,
  organizationId,
  kind,
});
const many = <T>(count: number, make: (index: number) => T) =>
  Array.from({ length: count }, (_, index) => make(index));
const claimsOf = (lanes: Lane[], running: RunningAttempt[] = [], bounds: Bounds = defaultBounds) =>
  Object.fromEntries(
    planClaims(lanes, running, bounds).map(({ webhookId, atMost }) => [webhookId, atMost]),
  );
const sum = (numbers: number[]) => numbers.reduce((total, number) => total + number, 0);

/** Returns the attempts in progress if these webhooks become due one by one, and all their attempts linger. */
function begunOneByOne(lanes: Lane[]): RunningAttempt[] {
  const running: RunningAttempt[] = [];
  for (const one of lanes)
    for (const { atMost } of planClaims([one], running, defaultBounds))
      running.push(...many(atMost, () => attempt(one.webhookId, "lingering", one.organizationId)));
  return running;
}

describe("a webhook with due deliveries", () => {
  it("gets up to sixteen attempts if no other webhook is due", () => {
    expect(claimsOf([lane("a")])).toEqual({ a: 16 });
    expect(
      claimsOf(
        [lane("a")],
        many(10, () => attempt("a", "quick")),
      ),
    ).toEqual({ a: 6 });
  });

  it("gets no attempt before its due time", () => {
    expect(claimsOf([lane("a", { dueInMs: 1 })])).toEqual({});
  });

  it("shares the attempts evenly with the others", () => {
    const claims = claimsOf(many(100, (index) => lane(`${index}`)));
    expect(sum(Object.values(claims))).toBe(192);
    expect(new Set(Object.values(claims))).toEqual(new Set([1, 2]));
  });

  it("comes before one with attempts in progress, and after one that has waited longer", () => {
    const busy = lane("busy", { dueInMs: -1_000 });
    const fresh = lane("fresh", { dueInMs: -1 });
    const older = lane("older", { dueInMs: -2 });
    const running = [
      ...many(190, (index) => attempt(`${index}`, "quick")),
      attempt("busy", "quick"),
    ];
    expect(claimsOf([busy, fresh, older], running)).toEqual({ older: 1 });
  });

  it("gets one attempt while it is slow", () => {
    expect(claimsOf([lane("a", { slow: true })])).toEqual({ a: 1 });
    expect(claimsOf([lane("a", { slow: true })], [attempt("a", "slow")])).toEqual({});
  });

  it("gets no second attempt while an attempt lingers", () => {
    expect(claimsOf([lane("a")], [attempt("a", "lingering")])).toEqual({});
  });

  it("is not delayed by hundreds of lingering attempts or slow webhooks", () => {
    const running = [
      ...many(64, (index) => attempt(`slow ${index}`, "slow")),
      ...many(700, (index) => attempt(`hanging ${index}`, "lingering")),
    ];
    const slow = many(100, (index) => lane(`more ${index}`, { slow: true, dueInMs: -1_000 }));
    expect(claimsOf([...slow, lane("good")], running)).toEqual({ good: 16 });
  });

  it("is not delayed by four organizations with many targets that respond late", () => {
    const late = many(64, (index) => lane(`${index}`, { organizationId: `late ${index % 4}` }));
    const running = begunOneByOne(late);
    expect(running).toHaveLength(4 * (64 + 12));
    expect(claimsOf([...late, lane("good")], running)).toEqual({ good: 16 });
  });

  it("is not delayed by 90 hanging webhooks of its organization", () => {
    const inOne = { organizationId: "one" };
    const hanging = many(90, (index) => lane(`${index}`, inOne));
    const running = begunOneByOne(hanging);
    expect(new Set(running.map(({ webhookId }) => webhookId)).size).toBe(90);
    expect(claimsOf([...hanging, lane("good", inOne)], running)).toEqual({ good: 1 });
  });

  it("gets its first attempt in the same round as 90 webhooks of its organization that begin to hang", () => {
    const inOne = { organizationId: "one" };
    const hanging = many(90, (index) => lane(`${index}`, { ...inOne, dueInMs: -2 }));
    expect(claimsOf([...hanging, lane("good", inOne)])).toMatchObject({ good: 1 });
  });

  it("is not delayed by three organizations with 200 hanging webhooks each", () => {
    const hanging = many(600, (index) => lane(`${index}`, { organizationId: `of ${index % 3}` }));
    const running = begunOneByOne(hanging);
    expect(claimsOf([...hanging, lane("good")], running)).toEqual({ good: 16 });
  });

  it("is not delayed by another organization with a large backlog", () => {
    const greedy = many(20, (index) => lane(`${index}`, { organizationId: "greedy" }));
    const claims = claimsOf([...greedy, lane("good", { dueInMs: 0 })]);
    expect(claims.good).toBe(16);
    delete claims.good;
    expect(sum(Object.values(claims))).toBe(64);
  });
});

describe("the search for due webhooks", () => {
  it("excludes webhooks and organizations that may not begin an attempt", () => {
    const crowd = many(64, (index) => attempt(`crowd ${index}`, "lingering", "crowded"));
    const burst = many(96, (index) => attempt(`burst ${index}`, "quick", "full"));
    const running = [
      ...many(16, () => attempt("busy", "quick", "roomy")),
      attempt("begun", "quick", "roomy"),
      attempt("lingers", "lingering", "roomy"),
      ...crowd,
      ...burst,
    ];
    const taken = ["busy", "lingers", ...[...crowd, ...burst].map(({ webhookId }) => webhookId)];
    expect(searchesFor(running, defaultBounds)).toMatchObject([
      { slow: false, exceptWebhooks: taken, exceptOrganizations: ["full"] },
      { slow: true, exceptOrganizations: [] },
    ]);
  });

  it("excludes slow webhooks while the maximum number of slow attempts is in progress", () => {
    const running = many(64, (index) => attempt(`${index}`, "slow"));
    expect(searchesFor(running, defaultBounds).map(({ slow }) => slow)).toEqual([false]);
  });
});

describe("for any due webhooks and attempts in progress", () => {
  const bounds: Bounds = {
    process: { quick: 12, open: 16, slow: 4 },
    organization: { quick: 5, open: 6, slow: 2, sideBySide: 3 },
    webhook: 2,
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
  /** Situations that bounded planning can cause: earlier claims, and some of their attempts linger now. */
  const situations = fc
    .record({ before: lanes, lanes, ages: fc.infiniteStream(fc.boolean()) })
    .map(({ before, lanes, ages }) => {
      const running = planClaims(before, [], bounds).flatMap(({ webhookId, atMost }) => {
        const found = before.find((one) => one.webhookId === webhookId);
        const kind = found?.slow ? "slow" : "quick";
        return many(atMost, () => attempt(webhookId, kind, found?.organizationId));
      });
      for (const one of running)
        if (one.kind === "quick" && ages.next().value) one.kind = "lingering";
      const claims = planClaims(lanes, running, bounds);
      const begun = claims.flatMap(({ webhookId, atMost }) => {
        const found = lanes.find((one) => one.webhookId === webhookId);
        return many(atMost, () =>
          attempt(webhookId, found?.slow ? "slow" : "quick", found?.organizationId),
        );
      });
      return { lanes, running, claims, begun, after: [...running, ...begun] };
    });
  type Situation = typeof situations extends fc.Arbitrary<infer T> ? T : never;
  const always = (check: (situation: Situation) => void) =>
    fc.assert(fc.property(situations, check), { numRuns: 500 });
  const countOf = (running: RunningAttempt[], test: (attempt: RunningAttempt) => boolean) =>
    running.filter(test).length;

  const isOpen = ({ kind }: RunningAttempt) => kind !== "slow";

  it("no bound of the process is exceeded", () =>
    always(({ after }) => {
      expect(countOf(after, isOpen)).toBeLessThanOrEqual(bounds.process.open);
      for (const kind of ["quick", "slow"] as const)
        expect(countOf(after, (one) => one.kind === kind)).toBeLessThanOrEqual(
          bounds.process[kind],
        );
    }));

  it("no bound of an organization or a webhook is exceeded", () =>
    always(({ after }) => {
      for (const { organizationId } of webhooks) {
        const own = after.filter((one) => one.organizationId === organizationId);
        expect(countOf(own, isOpen)).toBeLessThanOrEqual(bounds.organization.open);
        for (const kind of ["quick", "slow"] as const)
          expect(countOf(own, (one) => one.kind === kind)).toBeLessThanOrEqual(
            bounds.organization[kind],
          );
      }
      for (const { webhookId } of webhooks)
        expect(countOf(after, (one) => one.webhookId === webhookId)).toBeLessThanOrEqual(
          bounds.webhook,
        );
    }));

  it("an organization with many attempts begins attempts only for webhooks without one", () =>
    always(({ running, begun }) => {
      for (const { webhookId, organizationId } of begun) {
        const own = running.filter((one) => isOpen(one) && one.organizationId === organizationId);
        const isCrowded = own.length >= bounds.organization.sideBySide;
        const under = running.filter((one) => one.webhookId === webhookId);
        expect(isCrowded && under.length > 0).toBe(false);
      }
    }));

  it("only due webhooks are claimed, each once, with at least one delivery", () =>
    always(({ lanes, claims }) => {
      const due = lanes.filter(({ dueInMs }) => dueInMs <= 0).map(({ webhookId }) => webhookId);
      const claimed = claims.map(({ webhookId }) => webhookId);
      expect(new Set(claimed).size).toBe(claimed.length);
      expect(due).toEqual(expect.arrayContaining(claimed));
      expect(claims.every(({ atMost }) => atMost >= 1)).toBe(true);
    }));

  it("a second plan with the begun attempts claims nothing more", () =>
    always(({ lanes, after }) => {
      expect(planClaims(lanes, after, bounds)).toEqual([]);
    }));

  it("the searches include every webhook that may be claimed", () =>
    always(({ running, claims, lanes }) => {
      const searches = searchesFor(running, bounds);
      for (const { webhookId } of claims) {
        const found = lanes.find((one) => one.webhookId === webhookId);
        const search = searches.find(({ slow }) => slow === found?.slow);
        expect(search).toBeDefined();
        expect(search?.exceptWebhooks).not.toContain(webhookId);
        expect(search?.exceptOrganizations).not.toContain(found?.organizationId);
      }
    }));
});
