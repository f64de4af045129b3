import { createAdmission, createRateLimit, type RateLimit } from "@halyard/rate-limit";
import { describe, expect, it } from "@jest/globals";

/** A limit whose burst is what a second brings. */
const limitOf = (requestsPerSecond: number, options?: { maxBuckets: number }) =>
  createRateLimit(
    { requestsPerSecond, burst: Math.max(1, Math.floor(requestsPerSecond)) },
    options,
  );

/** How many of so many requests at one moment pass. */
function passing(limit: RateLimit, keyId: string, nowMs: number, requests = 1_000): number {
  let passed = 0;
  for (let index = 0; index < requests; index += 1)
    if (limit.take(keyId, nowMs).admitted) passed += 1;
  return passed;
}

describe("given a limit of ten requests a second", () => {
  it("lets ten pass at once, and then one each tenth of a second", () => {
    const limit = limitOf(10);
    expect(passing(limit, "a", 0)).toBe(10);
    expect(passing(limit, "a", 99)).toBe(0);
    expect(passing(limit, "a", 100)).toBe(1);
    expect(passing(limit, "a", 350)).toBe(2);
  });

  it("lets ten pass again after a second without requests, and no more after a day", () => {
    const limit = limitOf(10);
    passing(limit, "a", 0);
    expect(passing(limit, "a", 1_000)).toBe(10);
    expect(passing(limit, "a", 86_400_000)).toBe(10);
  });

  it("says how long to wait, and who waits so long passes", () => {
    const limit = limitOf(10);
    passing(limit, "a", 0);
    const rejected = limit.take("a", 30);
    expect(rejected).toEqual({ admitted: false, retryAfterMs: 70 });
    expect(limit.take("a", 100).admitted).toBe(true);
  });

  it("does not make those who ask too often wait longer for it", () => {
    const limit = limitOf(10);
    for (let nowMs = 0; nowMs < 1_000; nowMs += 1) passing(limit, "a", nowMs, 5);
    expect(passing(limit, "a", 1_100)).toBeGreaterThan(0);
  });

  it("counts each key for itself", () => {
    const limit = limitOf(10);
    expect(passing(limit, "a", 0)).toBe(10);
    expect(passing(limit, "b", 0)).toBe(10);
  });

  it("lets as many pass as it says over a long time, at any rate", () => {
    for (const rate of [1, 3, 7, 100, 333]) {
      const limit = limitOf(rate);
      let passed = 0;
      for (let nowMs = 0; nowMs < 60_000; nowMs += 2)
        if (limit.take("a", nowMs).admitted) passed += 1;
      const allowed = Math.min(rate * 60, 30_000);
      expect(passed).toBeGreaterThanOrEqual(Math.min(allowed, 30_000) * 0.99);
      expect(passed).toBeLessThanOrEqual(allowed + rate + 1);
    }
  });
});

describe("given somebody who wants to know what is left", () => {
  it("says how many may come at once, and when it is the whole burst again", () => {
    const limit = limitOf(10);
    expect(limit.left("a", 0)).toEqual({ requests: 10, fullInMs: 0 });
    passing(limit, "a", 0, 4);
    expect(limit.left("a", 0)).toEqual({ requests: 6, fullInMs: 400 });
    expect(limit.left("a", 150)).toEqual({ requests: 7, fullInMs: 250 });
    expect(limit.left("a", 1_000)).toEqual({ requests: 10, fullInMs: 0 });
  });

  it("takes nothing by saying it", () => {
    const limit = limitOf(10);
    for (let time = 0; time < 20; time += 1) limit.left("a", 0);
    expect(passing(limit, "a", 0)).toBe(10);
  });

  it.each([1, 3, 7, 333, 0.5])("says as many as then pass, at a rate of %d", (rate) => {
    const limit = limitOf(rate);
    for (let nowMs = 0; nowMs < 5_000; nowMs += 37) {
      limit.take("a", nowMs);
      const { requests } = limit.left("a", nowMs);
      if (nowMs % 5 === 0) expect(passing(limit, "a", nowMs)).toBe(requests);
    }
  });
});

describe("given a limit of less than one request a second", () => {
  it("lets one pass, and the next when its time has come", () => {
    const limit = limitOf(0.5);
    expect(limit).toMatchObject({ burst: 1, windowSeconds: 2 });
    expect(passing(limit, "a", 0)).toBe(1);
    expect(passing(limit, "a", 1_999)).toBe(0);
    expect(passing(limit, "a", 2_000)).toBe(1);
  });
});

describe("given a clock that is set back", () => {
  it("begins anew, and nobody waits until the clock is where it was", () => {
    const limit = limitOf(10);
    expect(passing(limit, "a", 3_600_000)).toBe(10);
    expect(passing(limit, "a", 0)).toBe(10);
    expect(passing(limit, "a", 100)).toBe(1);
  });
});

describe("given a burst that is larger than what a second brings", () => {
  it("lets the whole burst pass at once, and then as many as each second brings", () => {
    const limit = createRateLimit({ requestsPerSecond: 10, burst: 50 });
    expect(limit).toMatchObject({ burst: 50, windowSeconds: 5 });
    expect(passing(limit, "a", 0)).toBe(50);
    expect(passing(limit, "a", 1_000)).toBe(10);
    expect(passing(limit, "a", 6_000)).toBe(50);
  });
});

describe("given a burst that is smaller than what a second brings", () => {
  it("lets no more than that pass at once, and the rate over time", () => {
    const limit = createRateLimit({ requestsPerSecond: 100, burst: 5 });
    expect(passing(limit, "a", 0)).toBe(5);
    expect(passing(limit, "a", 10)).toBe(1);
    expect(passing(limit, "a", 1_000)).toBe(5);
  });
});

describe("given more keys than are remembered", () => {
  it("forgets those that have their whole burst again, without giving anything away", () => {
    const limit = limitOf(10, { maxBuckets: 2 });
    passing(limit, "a", 0);
    passing(limit, "b", 900);
    expect(passing(limit, "c", 1_001)).toBe(10);
    expect(passing(limit, "b", 1_001)).toBe(1);
  });

  it("forgets the oldest when all are in use", () => {
    const limit = limitOf(10, { maxBuckets: 2 });
    for (const keyId of ["a", "b", "c"]) passing(limit, keyId, 0);
    expect(passing(limit, "c", 0)).toBe(0);
    expect(passing(limit, "b", 0)).toBe(0);
    expect(passing(limit, "a", 0)).toBe(10);
  });

  it("does not forget one that goes on asking while it is refused", () => {
    const limit = limitOf(10, { maxBuckets: 3 });
    passing(limit, "flooding", 0);
    for (const keyId of ["a", "b", "c", "d", "e"]) {
      limit.take(keyId, 0);
      expect(limit.take("flooding", 0).admitted).toBe(false);
    }
  });
});

describe("given many more keys than are remembered", () => {
  const limit = limitOf(2, { maxBuckets: 1_000 });

  it("remembers those that asked last, in whatever order they came first", () => {
    for (let index = 0; index < 1_000; index += 1) limit.take(`k${index}`, 0);
    expect(passing(limit, "k0", 0)).toBe(1);
    for (let index = 1_000; index < 1_900; index += 1) limit.take(`k${index}`, 0);
    expect(passing(limit, "k0", 0)).toBe(0);
    expect(passing(limit, "k1", 0)).toBe(2);
  });

  it("makes room for new keys without going through all of them each time", () => {
    const large = limitOf(2);
    const begun = performance.now();
    for (let index = 0; index < 200_000; index += 1) large.take(`k${index}`, 0);
    expect(performance.now() - begun).toBeLessThan(5_000);
  });
});

describe("given a key that asks too often", () => {
  it("is refused with the fields that say when to come back, in whole seconds", () => {
    const admit = createAdmission(limitOf(2), "Later.");
    expect(admit({ id: "a" }, 0)).toBeUndefined();
    expect(admit({ id: "a" }, 0)).toBeUndefined();
    expect(admit({ id: "a" }, 0)).toEqual({
      rejected: "RATE_001",
      message: "Later.",
      headers: {
        "retry-after": "1",
        "ratelimit-policy": '"requests";q=2;w=1',
        ratelimit: '"requests";r=0;t=1',
      },
    });
  });

  it("asks the client to retry after at most 10 minutes, and tells the real reset", () => {
    const admit = createAdmission(createRateLimit({ requestsPerSecond: 1 / 3_600, burst: 1 }), "");
    admit({ id: "a" }, 0);
    expect(admit({ id: "a" }, 0)?.headers).toMatchObject({
      "retry-after": "600",
      ratelimit: '"requests";r=0;t=3600',
    });
  });
});
