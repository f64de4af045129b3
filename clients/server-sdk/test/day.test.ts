import { describe, expect, test } from "@jest/globals";
import { createClientOn } from "../src/create-client.ts";
import { createFakeClock } from "./support/fake-clock.ts";
import { type Behavior, createFakeEdge } from "./support/fake-edge.ts";
import { createNetwork } from "./support/in-process-fetch.ts";
import { randomFrom } from "./support/random.ts";
import { serverKey } from "./support/setup.ts";

const minuteMs = 60_000;
const minutesPerDay = 24 * 60;

type World = ReturnType<typeof createWorld>;

function createWorld(seed: number) {
  const clock = createFakeClock();
  const edge = createFakeEdge();
  const network = createNetwork(() => edge);
  const random = randomFrom(seed);
  edge.change("revision-0", {});
  const logger = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const client = createClientOn(
    { fetch: network.fetch, clock, random },
    { baseUrl: "http://edge.example.com", serverKey, logger },
  );
  return { clock, edge, network, random, client };
}

/** Faults by name. Each begins a fault and returns a function that ends it. */
const faults: Record<string, (world: World) => () => void> = {
  "network down": ({ network, edge }) => {
    network.isDown = true;
    edge.cutStreams();
    return () => {
      network.isDown = false;
    };
  },
  "black hole": ({ edge }) => {
    edge.abandonStreams();
    return begin(edge, "hang");
  },
  "service unavailable": ({ edge }) => {
    edge.cutStreams();
    return begin(edge, { status: 503, headers: { "retry-after": "2" } });
  },
  "limit reached": ({ edge }) => {
    edge.cutStreams();
    edge.behave("stream", { status: 429, headers: { "retry-after": "60" } });
    return () => edge.behave("stream", "normal");
  },
  "buffering proxy": ({ edge }) => {
    edge.cutStreams();
    edge.behave("stream", "withhold");
    return () => edge.behave("stream", "normal");
  },
  "edge behind": ({ edge }) => {
    edge.isolate();
    edge.cutStreams();
    return () => edge.rejoin();
  },
  "edge restarted": ({ edge }) => {
    edge.forgetTags();
    edge.cutStreams();
    return () => undefined;
  },
  garbage: ({ edge }) => {
    edge.write('event: ruleset\nid: "x"\ndata: {"flags":\n\n');
    return () => undefined;
  },
  suspension: ({ clock, edge }) => {
    edge.cutStreams();
    clock.suspend(30 * minuteMs, { monotonicContinues: false });
    return () => undefined;
  },
  "clock set": ({ clock, random }) => {
    clock.setWall((random() - 0.5) * 4 * 3_600_000);
    return () => undefined;
  },
};

function begin(edge: World["edge"], behavior: Behavior) {
  const routes = ["stream", "poll", "usage"] as const;
  for (const route of routes) edge.behave(route, behavior);
  return () => {
    for (const route of routes) edge.behave(route, "normal");
  };
}

/** The number of the newest revision that the client has. Each change replaces the flag `revision-<n>`. */
function revisionOf({ client }: World): number {
  const keys = Object.keys(client.allFlags());
  expect(keys.length).toBe(1);
  return Number(keys[0]?.replace("revision-", ""));
}

describe.each([1, 2])("24 hours with changes and outages (seed %i)", (seed) => {
  test("lose no update, never go back, and leave no timers or connections", async () => {
    const world = createWorld(seed);
    const { clock, edge, network, random, client } = world;
    await clock.run(1_000);
    const idle = { timers: clock.timers, bodies: network.openBodies };
    let revision = 0;
    let seen = 0;
    let endFault: (() => void) | undefined;

    for (let minute = 0; minute < minutesPerDay; minute += 1) {
      if (minute % 20 === 5) {
        const names = Object.keys(faults);
        const name = names[Math.floor(random() * names.length)] as string;
        endFault = faults[name]?.(world);
      }
      if (minute % 20 === 5 + Math.floor(random() * 6) || minute % 20 === 12) {
        endFault?.();
        endFault = undefined;
      }
      if (random() < 0.5) {
        edge.change(`revision-${revision}`, undefined);
        revision += 1;
        edge.change(`revision-${revision}`, {});
      }
      for (let quarter = 0; quarter < 4; quarter += 1) {
        await clock.run(minuteMs / 4);
        edge.heartbeat();
        const now = revisionOf(world);
        expect(now).toBeGreaterThanOrEqual(seen);
        seen = now;
      }
      // Seven minutes after each fault, every change has arrived.
      if (minute % 20 === 4 && minute > 20) expect(seen).toBe(revision);
    }
    endFault?.();
    await clock.run(10 * minuteMs);
    expect(revisionOf(world)).toBe(revision);
    expect(client.status).toMatchObject({ source: "stream", current: true });
    expect({ timers: clock.timers, bodies: network.openBodies }).toEqual(idle);
    await client.close();
    expect(clock.timers).toBe(0);
    expect(network.openBodies).toBe(0);
  });
});

describe("24 hours without the service", () => {
  test("keep the usage counts of each hour, and send each of them once", async () => {
    const world = createWorld(3);
    const { clock, edge, network, client } = world;
    await clock.run(1_000);
    network.isDown = true;
    edge.cutStreams();
    for (let hour = 0; hour < 20; hour += 1) {
      client.isEnabled("revision-0");
      await clock.run(60 * minuteMs);
    }
    network.isDown = false;
    await clock.run(10 * minuteMs);
    await client.close();
    const reports = edge.of("usage").map(({ body }) => JSON.parse(body));
    const counts = reports.map(({ flags }) => flags["revision-0"].true);
    expect(counts.reduce((sum, count) => sum + count, 0)).toBe(20);
    for (const { period } of reports)
      expect(Date.parse(period.end) - Date.parse(period.start)).toBeLessThanOrEqual(3_700_000);
  });
});
