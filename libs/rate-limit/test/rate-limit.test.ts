import { createAdmission, createRateLimit, type RateLimit } from "@halyard/rate-limit";
import { describe, expect, it } from "@jest/globals";

/** Creates a limit with a burst of one second. */
const limitOf = (requestsPerSecond: number, options?: { maxBuckets: number }) =>
  createRateLimit(
    { requestsPerSecond, burst: Math.max(1, Math.floor(requestsPerSecond)) },
    options,
  );

/** Returns the number of admitted requests out of a number of simultaneous ones. */
function passing(limit: RateLimit, keyId: string, nowMs: number, requests = 1_000): number {
  let passed = 0;
  for (let index = 0; index < requests; index += 1)
    if (limit.take(keyId, nowMs).admitted) passed += 1;
  return passed;
}

describe("given a limit of ten requests a second", () => {
  it("admits ten simultaneous requests, and then one each tenth of a second", () => {
    const limit = limitOf(10);
    expect(passing(limit, "a", 0)).toBe(10);
    expect(passing(limit, "a", 99)).toBe(0);
    expect(passing(limit, "a", 100)).toBe(1);
    expect(passing(limit, "a", 350)).toBe(2);
  });

  it("admits ten again after a second without requests, and not more after a day", () => {
    const limit = limitOf(10);
    passing(limit, "a", 0);
    expect(passing(limit, "a", 1_000)).toBe(10);
    expect(passing(limit, "a", 86_400_000)).toBe(10);
  });

  it("returns the time after which a request is admitted", () => {
    const limit = limitOf(10);
    passing(limit, "a", 0);
    const rejected = limit.take("a", 30);
    expect(rejected).toEqual({ admitted: false, retryAfterMs: 70 });
    expect(limit.take("a", 100).admitted).toBe(true);
  });

  it("does not extend the wait because of rejected requests", () => {
    const limit = limitOf(10);
    for (let nowMs = 0; nowMs < 1_000; nowMs += 1) passing(limit, "a", nowMs, 5);
    expect(passing(limit, "a", 1_100)).toBeGreaterThan(0);
  });

  it("counts each key separately", () => {
    const limit = limitOf(10);
    expect(passing(limit, "a", 0)).toBe(10);
    expect(passing(limit, "b", 0)).toBe(10);
  });

  it("admits its rate over a long time, at any rate", () => {
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

describe("the remaining requests", () => {
  it("are reported with the time until the full burst is available", () => {
    const limit = limitOf(10);
    expect(limit.left("a", 0)).toEqual({ requests: 10, fullInMs: 0 });
    passing(limit, "a", 0, 4);
    expect(limit.left("a", 0)).toEqual({ requests: 6, fullInMs: 400 });
    expect(limit.left("a", 150)).toEqual({ requests: 7, fullInMs: 250 });
    expect(limit.left("a", 1_000)).toEqual({ requests: 10, fullInMs: 0 });
  });

  it("are not reduced by reading them", () => {
    const limit = limitOf(10);
    for (let time = 0; time < 20; time += 1) limit.left("a", 0);
    expect(passing(limit, "a", 0)).toBe(10);
  });

  it.each([1, 3, 7, 333, 0.5])(
    "are the number of requests then admitted, at a rate of %d",
    (rate) => {
      const limit = limitOf(rate);
      for (let nowMs = 0; nowMs < 5_000; nowMs += 37) {
        limit.take("a", nowMs);
        const { requests } = limit.left("a", nowMs);
        if (nowMs % 5 === 0) expect(passing(limit, "a", nowMs)).toBe(requests);
      }
    },
  );
});

describe("given requests of different costs", () => {
  it("admits a request that costs several when as many are available", () => {
    const limit = limitOf(10);
    expect(limit.take("a", 0, 8).admitted).toBe(true);
    expect(limit.take("a", 0, 3)).toEqual({ admitted: false, retryAfterMs: 100 });
    expect(limit.take("a", 100, 3).admitted).toBe(true);
  });

  it("admits a request that costs more than a burst when the full burst is available", () => {
    const limit = limitOf(10);
    expect(limit.take("a", 0, 1_000).admitted).toBe(true);
    expect(limit.take("a", 999, 1_000).admitted).toBe(false);
    expect(limit.take("a", 1_000, 1_000).admitted).toBe(true);
  });

  it("rejects requests until a cost that was charged afterwards is paid, for one more burst at most", () => {
    const limit = limitOf(10);
    limit.charge("a", 0, 15);
    expect(limit.left("a", 0)).toEqual({ requests: 0, fullInMs: 1_500 });
    expect(limit.take("a", 599).admitted).toBe(false);
    expect(limit.take("a", 600).admitted).toBe(true);
    limit.charge("a", 600, 1_000_000);
    expect(limit.take("a", 1_699).admitted).toBe(false);
    expect(limit.take("a", 1_700).admitted).toBe(true);
  });
});

describe("given a limit of less than one request a second", () => {
  it("admits one request, and the next after the interval", () => {
    const limit = limitOf(0.5);
    expect(limit).toMatchObject({ burst: 1, windowSeconds: 2 });
    expect(passing(limit, "a", 0)).toBe(1);
    expect(passing(limit, "a", 1_999)).toBe(0);
    expect(passing(limit, "a", 2_000)).toBe(1);
  });
});

describe("given a clock that is set back", () => {
  it("continues, so that no caller waits until the clock catches up", () => {
    const limit = limitOf(10);
    expect(passing(limit, "a", 3_600_000)).toBe(10);
    expect(passing(limit, "a", 0)).toBe(0);
    expect(passing(limit, "a", 100)).toBe(1);
  });

  it("admits what is left of a burst, also after a step that is shorter than the burst lasts", () => {
    const limit = limitOf(10);
    for (let request = 0; request < 5; request++) limit.take("a", 10_000);
    expect(passing(limit, "a", 9_200)).toBe(5);
  });
});

describe("given a burst that is larger than the rate per second", () => {
  it("admits the full burst at the same time, and then the rate", () => {
    const limit = createRateLimit({ requestsPerSecond: 10, burst: 50 });
    expect(limit).toMatchObject({ burst: 50, windowSeconds: 5 });
    expect(passing(limit, "a", 0)).toBe(50);
    expect(passing(limit, "a", 1_000)).toBe(10);
    expect(passing(limit, "a", 6_000)).toBe(50);
  });
});

describe("given a burst that is smaller than the rate per second", () => {
  it("admits the burst at the same time, and the rate over time", () => {
    const limit = createRateLimit({ requestsPerSecond: 100, burst: 5 });
    expect(passing(limit, "a", 0)).toBe(5);
    expect(passing(limit, "a", 10)).toBe(1);
    expect(passing(limit, "a", 1_000)).toBe(5);
  });
});

describe("given more keys than are stored", () => {
  it("removes keys with a full burst, which admits no additional requests", () => {
    const limit = limitOf(10, { maxBuckets: 2 });
    passing(limit, "a", 0);
    passing(limit, "b", 900);
    expect(passing(limit, "c", 1_001)).toBe(10);
    expect(passing(limit, "b", 1_001)).toBe(1);
  });

  it("removes the least recently used key if all are in use", () => {
    const limit = limitOf(10, { maxBuckets: 2 });
    for (const keyId of ["a", "b", "c"]) passing(limit, keyId, 0);
    expect(passing(limit, "c", 0)).toBe(0);
    expect(passing(limit, "b", 0)).toBe(0);
    expect(passing(limit, "a", 0)).toBe(10);
  });

  it("does not remove a key that still sends requests while they are rejected", () => {
    const limit = limitOf(10, { maxBuckets: 3 });
    passing(limit, "flooding", 0);
    for (const keyId of ["a", "b", "c", "d", "e"]) {
      limit.take(keyId, 0);
      expect(limit.take("flooding", 0).admitted).toBe(false);
    }
  });
});

describe("given many more keys than are stored", () => {
  const limit = limitOf(2, { maxBuckets: 1_000 });

  it("keeps the most recently used keys, independently of their first use", () => {
    for (let index = 0; index < 1_000; index += 1) limit.take(`k${index}`, 0);
    expect(passing(limit, "k0", 0)).toBe(1);
    for (let index = 1_000; index < 1_900; index += 1) limit.take(`k${index}`, 0);
    expect(passing(limit, "k0", 0)).toBe(0);
    expect(passing(limit, "k1", 0)).toBe(2);
  });

  it("makes room for new keys without reading all keys each time", () => {
    const large = limitOf(2);
    // CPU time, because other processes use the machine too.
    const begun = process.threadCpuUsage();
    for (let index = 0; index < 200_000; index += 1) large.take(`k${index}`, 0);
    const { user, system } = process.threadCpuUsage(begun);
    expect((user + system) / 1e3).toBeLessThan(5_000);
  });
});

describe("given a key beyond its limit", () => {
  it("is rejected with the fields for the time of the next request, in whole seconds", () => {
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

  it("is rejected with a time that is never too early", () => {
    const admit = createAdmission(createRateLimit({ requestsPerSecond: 0.4, burst: 1 }), "");
    admit({ id: "a" }, 0);
    expect(admit({ id: "a" }, 0)?.headers).toMatchObject({
      "retry-after": "3",
      ratelimit: '"requests";r=0;t=3',
    });
  });

  it("is rejected with Retry-After of at most 10 minutes, and the real time of the reset", () => {
    const admit = createAdmission(createRateLimit({ requestsPerSecond: 1 / 3_600, burst: 1 }), "");
    admit({ id: "a" }, 0);
    expect(admit({ id: "a" }, 0)?.headers).toMatchObject({
      "retry-after": "600",
      ratelimit: '"requests";r=0;t=3600',
    });
  });
});
