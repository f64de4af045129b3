import { statSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { eventually } from "@halyard/testing";
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import { beginChapter, type Chapter } from "../src/stories/chapter.ts";
import { killOne } from "../src/system/replicas.ts";
import { type Random, seededRandom } from "../src/system/seeded-random.ts";
import { type Edge, type System, startSystem } from "../src/system/system.ts";

/**
 * Storms of random faults: NATS, PostgreSQL, edges and managements are killed or suspended while flags change.
 * Afterwards, everything must agree. Each storm depends only on its seed. `CHAOS_SEED` is the first seed,
 * `CHAOS_STORMS` the number of storms, and `CHAOS_SECONDS` the duration of each.
 */
const firstSeed = Number(process.env.CHAOS_SEED ?? 1);
const storms = Number(process.env.CHAOS_STORMS ?? 5);
const seconds = Number(process.env.CHAOS_SECONDS ?? 40);
/** Time for the start of the system, and for the checks after the storm. */
const extraMs = 180_000;
jest.setTimeout(seconds * 1_000 + extraMs);

type Disturbance = () => Promise<string>;

describe("after a storm of faults", () => {
  let system: System | undefined;
  afterEach(() => system?.close());

  it.each(Array.from({ length: storms }, (_, index) => firstSeed + index))(
    "every edge, the snapshot and the event log have every accepted change (seed %d)",
    async (seed) => {
      system = await startSystem({ managements: 2, edges: 3, postgres: "own" });
      const chapter = await beginChapter(system, { name: `Storm ${seed}` });
      const changes = chapter.change();
      await awaitCached(system.edges);
      const done = await disturb(system, chapter, seed);
      expect({ done, faults: await chapter.faults() }).toEqual({ done, faults: [] });
      expect(changes.acknowledged.length).toBeGreaterThan(0);
    },
  );
});

/** Longer than a write of the cache takes. A file that is newer by this time contains the flags of the chapter. */
const writeTakesMs = 2_000;

async function awaitCached(edges: readonly Edge[]): Promise<void> {
  const wantedMs = Date.now() + writeTakesMs;
  await eventually(() => edges.every(({ cacheFile }) => statSync(cacheFile).mtimeMs > wantedMs), {
    because: "the caches hold the flags of the chapter",
  });
}

/** Disturbs NATS, and concurrently one process after another. Returns the faults in order. */
async function disturb(system: System, chapter: Chapter, seed: number): Promise<string[]> {
  const endsAtMs = performance.now() + seconds * 1_000;
  const done: string[] = [];
  async function repeat(random: Random, disturbances: readonly Disturbance[]): Promise<void> {
    while (performance.now() < endsAtMs) {
      await delay(random.upTo(2_000));
      done.push(await random.oneOf(disturbances)());
    }
  }
  const ofNats = seededRandom(2 * seed);
  const ofProcesses = seededRandom(2 * seed + 1);
  await Promise.all([
    repeat(ofNats, natsDisturbances(system, ofNats)),
    repeat(ofProcesses, processDisturbances(system, chapter, ofProcesses)),
  ]);
  return done;
}

function natsDisturbances({ nats }: System, random: Random): Disturbance[] {
  async function killed(forMs: number): Promise<void> {
    await nats.kill();
    await delay(forMs);
    await nats.start();
  }
  return [
    async () => {
      const forMs = random.upTo(4_000);
      await killed(forMs);
      return `NATS killed for ${forMs} ms`;
    },
    async () => {
      // This kills connections during their handshakes.
      for (let round = 0; round < 4; round += 1) {
        await killed(random.upTo(300));
        await delay(random.upTo(300));
      }
      return "NATS killed four times in a row";
    },
    async () => {
      const forMs = random.upTo(6_000);
      nats.signal("SIGSTOP");
      await delay(forMs);
      nats.signal("SIGCONT");
      return `NATS suspended for ${forMs} ms`;
    },
  ];
}

function processDisturbances(
  { edges, managements, postgres, startManagement }: System,
  { watcher }: Chapter,
  random: Random,
): Disturbance[] {
  return [
    async () => {
      const edge = random.oneOf<Edge>(edges);
      await edge.process.kill();
      watcher.forgive(edge);
      await edge.start({ awaitReady: false });
      return `${edge.name} killed`;
    },
    async () => {
      const edge = random.oneOf<Edge>(edges);
      const forMs = random.upTo(5_000);
      edge.process.signal("SIGSTOP");
      await delay(forMs);
      edge.process.signal("SIGCONT");
      return `${edge.name} suspended for ${forMs} ms`;
    },
    async () => {
      await killOne(managements);
      await startManagement();
      return "a management killed";
    },
    async () => {
      const forMs = random.upTo(2_000);
      await postgres?.kill();
      await delay(forMs);
      await postgres?.start();
      return `PostgreSQL killed for ${forMs} ms`;
    },
  ];
}
