import { describe, expect, it } from "@jest/globals";
import { createOrganizationMonths, usedOf } from "../../src/admission/organization-months.ts";
import { id } from "../builders.ts";

/** Creates an organization in January with a limit of 1,000 requests. */
function inJanuary() {
  const months = createOrganizationMonths({ limitOf: () => 1_000 });
  months.advanceTo(Date.parse("2027-01-10T00:00:00Z"));
  const one = months.of(id("org"));
  return {
    months,
    used: () => usedOf(one),
    request: (count: number) => {
      one.fresh += count;
    },
    applyQuota: (requests: number, month = "2027-01") =>
      months.applyQuota({ organization_id: id("org"), month, requests }),
    advanceTo: (month: string) => months.advanceTo(Date.parse(`${month}-01T00:00:00Z`)),
  };
}

describe("given requests that this edge has counted", () => {
  it("adds them to the number from usage-metering until that number includes them", () => {
    const { months, used, request, applyQuota } = inJanuary();
    applyQuota(100);
    request(10);
    expect(used()).toBe(110);
    months.take();
    request(1);
    expect(used()).toBe(111);
    expect(used()).toBe(111);
    applyQuota(110);
    expect(used()).toBe(111);
    months.take();
    applyQuota(111);
    expect(used()).toBe(111);
  });

  it("keeps adding them up while usage-metering is unavailable, even if they are sent repeatedly", () => {
    const { months, used, request, applyQuota } = inJanuary();
    applyQuota(100);
    for (let round = 0; round < 20; round += 1) {
      request(10);
      months.take();
    }
    expect(used()).toBe(300);
    applyQuota(300);
    expect(used()).toBe(300);
  });

  it("counts none twice if the number arrives before the acknowledgement", () => {
    const { months, used, request, applyQuota } = inJanuary();
    request(10);
    months.take();
    request(5);
    applyQuota(10);
    expect(used()).toBe(15);
    months.take();
    applyQuota(15);
    expect(used()).toBe(15);
  });

  it("loses none of them while usage-metering processes a backlog, number by number", () => {
    const { months, used, request, applyQuota } = inJanuary();
    applyQuota(900);
    request(200);
    months.take();
    for (const number of [901, 950, 1_050, 1_100]) {
      applyQuota(number);
      expect(used()).toBe(1_100);
    }
    request(1);
    applyQuota(1_100 + 30);
    expect(used()).toBe(1_131);
  });

  it("loses none of them if another edge's requests raise the number while they are being sent", () => {
    const { months, used, request, applyQuota } = inJanuary();
    applyQuota(900);
    request(200);
    months.take();
    applyQuota(901);
    expect(used()).toBe(1_100);
    request(3);
    applyQuota(902);
    expect(used()).toBe(1_103);
    months.take();
    applyQuota(902 + 203);
    expect(used()).toBe(1_105);
  });
});

describe("given two edges, and a usage-metering that counts their messages with any delay", () => {
  it.each([1, 2, 3, 4, 5])(
    "neither number decreases or exceeds the real one, and both reach it in the end (%i)",
    (seed) => {
      const edges = [inJanuary(), inJanuary()];
      const random = seededRandom(seed);
      const queue: number[] = [];
      const fresh = [0, 0];
      let [made, counted] = [0, 0];
      const known = [0, 0];
      const send = (at: number) => {
        edges[at]?.months.take();
        queue.push(fresh[at] as number);
        fresh[at] = 0;
      };
      const countNext = () => {
        counted += queue.shift() ?? 0;
        for (const edge of edges) edge.applyQuota(counted);
      };
      const steps = [
        (at: number) => {
          edges[at]?.request(7);
          fresh[at] = (fresh[at] as number) + 7;
          made += 7;
        },
        send,
        countNext,
      ];
      for (let step = 0; step < 300; step += 1) {
        steps[Math.floor(random() * steps.length)]?.(Math.floor(random() * edges.length));
        for (const [at, edge] of edges.entries()) {
          expect(edge.used()).toBeGreaterThanOrEqual(known[at] as number);
          expect(edge.used()).toBeLessThanOrEqual(made);
          known[at] = edge.used();
        }
      }
      for (const at of edges.keys()) send(at);
      while (queue.length > 0) countNext();
      expect(edges.map((edge) => edge.used())).toEqual([made, made]);
    },
  );
});

describe("given numbers from usage-metering", () => {
  it("keeps the highest number of a month, regardless of their order", () => {
    const { used, applyQuota } = inJanuary();
    for (const requests of [50, 70, 60]) applyQuota(requests);
    expect(used()).toBe(70);
  });

  it("ignores an unchanged number", () => {
    const { months, used, request, applyQuota } = inJanuary();
    applyQuota(70);
    request(5);
    months.take();
    applyQuota(70);
    expect(used()).toBe(75);
  });

  it("uses the next month's number when that month begins, and ignores the previous month's", () => {
    const { used, applyQuota, advanceTo } = inJanuary();
    applyQuota(900);
    applyQuota(3, "2027-02");
    applyQuota(950, "2027-01");
    expect(used()).toBe(950);
    advanceTo("2027-02");
    expect(used()).toBe(3);
  });

  it("keeps the current number if a fast clock causes a number of a later month", () => {
    const { months, used, request, applyQuota } = inJanuary();
    applyQuota(900);
    request(50);
    applyQuota(7, "2031-05");
    expect(used()).toBe(950);
    months.take();
    applyQuota(960);
    expect(used()).toBe(960);
  });

  it("uses the current month's number even if the later month's arrived first", () => {
    const { used, applyQuota } = inJanuary();
    applyQuota(7, "2031-05");
    applyQuota(900);
    expect(used()).toBe(900);
  });

  it("keeps the next month's number if numbers of distant or past months arrive", () => {
    const { used, applyQuota, advanceTo } = inJanuary();
    applyQuota(900);
    applyQuota(7, "2031-05");
    applyQuota(3, "2027-02");
    applyQuota(800, "2026-12");
    expect(used()).toBe(900);
    advanceTo("2027-02");
    expect(used()).toBe(3);
    applyQuota(4, "2027-03");
    advanceTo("2027-03");
    expect(used()).toBe(4);
  });

  it("keeps the latest month's number while no request advances the month", () => {
    const { used, applyQuota, advanceTo } = inJanuary();
    applyQuota(900);
    applyQuota(3, "2027-02");
    applyQuota(5, "2027-03");
    advanceTo("2027-03");
    expect(used()).toBe(5);
  });
});

describe("given the end of the month", () => {
  it("starts at zero, without requests that are still being sent", () => {
    const { months, used, request, applyQuota, advanceTo } = inJanuary();
    applyQuota(900);
    request(50);
    months.take();
    request(50);
    advanceTo("2027-02");
    expect(used()).toBe(0);
    request(1);
    expect(used()).toBe(1);
  });

  it("restores the previous number if the clock is set back to the previous month", () => {
    const { used, applyQuota, advanceTo } = inJanuary();
    applyQuota(900);
    advanceTo("2027-02");
    advanceTo("2027-01");
    expect(used()).toBe(900);
  });
});

/** Returns a deterministic generator of numbers from 0 to 1 (Park and Miller). */
function seededRandom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state * 48_271) % 2_147_483_647;
    return state / 2_147_483_647;
  };
}
