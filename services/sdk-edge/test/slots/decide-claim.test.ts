import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type Claim, decideClaim } from "../../src/slots/stream-slots.ts";

function claim(fields: Partial<Claim>): Claim {
  const isEnded = (edgeId: string) => edgeId.startsWith("ended");
  return { holders: {}, edgeId: "ours", isEnded, open: 0, waiting: 0, limit: 10, ...fields };
}

describe("given an edge that claims slots", () => {
  it.each<{ it: string; given: Partial<Claim>; granted: number; holders: Record<string, number> }>([
    {
      it: "is granted a slot for each waiting stream if enough are free",
      given: { waiting: 4 },
      granted: 4,
      holders: { ours: 4 },
    },
    {
      it: "is granted the slots that the other edges leave",
      given: { holders: { other: 7, third: 1 }, waiting: 4 },
      granted: 2,
      holders: { other: 7, third: 1, ours: 2 },
    },
    {
      it: "is granted nothing if all slots are taken",
      given: { holders: { other: 10 }, waiting: 1 },
      granted: 0,
      holders: { other: 10 },
    },
    {
      it: "is granted the slots of edges whose entries were ended",
      given: { holders: { ended: 9, other: 1 }, waiting: 9 },
      granted: 9,
      holders: { other: 1, ours: 9 },
    },
    {
      it: "releases unused slots",
      given: { holders: { ours: 5, other: 1 }, open: 2 },
      granted: 0,
      holders: { other: 1, ours: 2 },
    },
    {
      it: "is removed if it uses no slots",
      given: { holders: { ours: 5, other: 1 } },
      granted: 0,
      holders: { other: 1 },
    },
    {
      it: "uses its own unused slots for waiting streams first",
      given: { holders: { ours: 5, other: 5 }, open: 2, waiting: 4 },
      granted: 3,
      holders: { other: 5, ours: 5 },
    },
    {
      it: "keeps its open streams and is granted nothing if the limit is lower",
      given: { holders: { ours: 5, other: 5 }, open: 5, waiting: 1, limit: 3 },
      granted: 0,
      holders: { other: 5, ours: 5 },
    },
    {
      it: "is granted everything if there is no limit",
      given: { holders: { other: 1_000 }, open: 500, waiting: 3, limit: null },
      granted: 3,
      holders: { other: 1_000, ours: 503 },
    },
    {
      it: "is granted nothing if the limit is 0",
      given: { waiting: 1, limit: 0 },
      granted: 0,
      holders: {},
    },
  ])("$it", ({ given, granted, holders }) => {
    const decision = decideClaim(claim(given));
    expect(decision).toEqual({ granted, holders });
  });
});

describe("given any claim", () => {
  const slots = fc.integer({ min: 1, max: 20 });
  const anyClaim = fc.record({
    holders: fc.dictionary(fc.constantFrom("ours", "other", "third", "ended", "ended2"), slots),
    open: fc.nat({ max: 20 }),
    waiting: fc.nat({ max: 20 }),
    limit: fc.option(fc.nat({ max: 40 })),
  });
  const sum = (holders: Readonly<Record<string, number>>) =>
    Object.values(holders).reduce((total, one) => total + one, 0);

  it("never writes a total above the limit, or above the number of open streams", () => {
    fc.assert(
      fc.property(anyClaim, (fields) => {
        const decision = decideClaim(claim(fields));
        const { other = 0, third = 0 } = fields.holders;
        const inUse = other + third + fields.open;
        const total = sum(decision.holders);
        const { limit } = fields;
        if (limit !== null) expect(total).toBeLessThanOrEqual(Math.max(limit, inUse));
      }),
    );
  });

  it("keeps the counts of the other edges and removes those of ended ones", () => {
    fc.assert(
      fc.property(anyClaim, (fields) => {
        const { other, third } = fields.holders;
        const { ours: _, ...rest } = decideClaim(claim(fields)).holders;
        expect(rest).toEqual(JSON.parse(JSON.stringify({ other, third })));
      }),
    );
  });

  it("grants as many slots as are free", () => {
    fc.assert(
      fc.property(anyClaim, (fields) => {
        const { granted, holders } = decideClaim(claim(fields));
        expect(holders.ours ?? 0).toBe(fields.open + granted);
        const isFull = fields.limit !== null && sum(holders) >= fields.limit;
        expect(granted === fields.waiting || isFull).toBe(true);
      }),
    );
  });
});
