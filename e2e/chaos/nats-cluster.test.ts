import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream, snapshotBucket } from "@halyard/contracts";
import {
  type ClusterNode,
  call,
  eventually,
  type NatsCluster,
  natsServerBinary,
  startNatsCluster,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import { beginChapter, type Chapter } from "../src/stories/chapter.ts";
import { awaitAnswers, withManager } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";

/** What a cluster of three NATS servers survives. An operator of three replicas expects each of these. */
jest.setTimeout(300_000);

/** Changes must go on within this time after a fault. */
const resumedWithinMs = 10_000;
const readPauseMs = 10;

describe("given three NATS servers with three replicas of every stream", () => {
  let nats: NatsCluster;
  let system: System;

  beforeAll(async () => {
    nats = await startNatsCluster(await natsServerBinary());
    system = await startSystem({
      ...{ managements: 2, schedulers: 1, dispatchers: 1, meterings: 1, edges: 2, nats },
    });
  });
  afterAll(() => system?.close());

  /**
   * Runs a fault beside changes, streams and reads, and expects that nothing was lost or refused. The fault is repaired
   * after changes go on.
   */
  async function survive(
    name: string,
    { fault, repair }: { fault: () => Promise<void>; repair: () => Promise<void> },
  ): Promise<void> {
    await awaitReplicated();
    const chapter = await beginChapter(system, { name });
    const reads = readAll(system, chapter);
    const changes = chapter.change();
    await awaitAnswers(changes, 40);
    const startedAtMs = performance.now();
    await fault();
    await awaitAnswers(changes, 40);
    const resumedMs = Math.round(performance.now() - startedAtMs);
    process.stdout.write(`${name}: 40 changes after ${resumedMs} ms\n`);
    await repair();
    const faults = await chapter.faults();
    const refused = await reads.stop();
    expect({ faults, refused }).toEqual({ faults: [], refused: [] });
    expect(resumedMs).toBeLessThan(resumedWithinMs);
  }

  async function awaitReplicated(): Promise<void> {
    await eventually(() => withManager(nats.url, behind), {
      until: (names) => names.length === 0,
      because: "all replicas are current",
    });
  }

  it.each([snapshotBucket.streamName, flagEventsStream.name])(
    "goes on when the leader of %s is killed",
    async (stream) => {
      const leader = await nats.leaderOf(stream);
      await survive(`the leader of ${stream} killed`, { fault: leader.kill, repair: leader.start });
    },
  );

  it("goes on when a server is lost for good, and another one takes its place", async () => {
    const lost = nats.nodes[2] as ClusterNode;
    const fault = async () => {
      await lost.kill();
      lost.forget();
    };
    await survive("a server lost", { fault, repair: lost.start });
    await awaitReplicated();
  });

  it("goes on when a server stops for moments, as on a slow disk", async () => {
    const slow = await nats.leaderOf(snapshotBucket.streamName);
    const fault = async () => {
      for (let burst = 0; burst < 5; burst += 1) {
        slow.signal("SIGSTOP");
        await delay(400);
        slow.signal("SIGCONT");
        await delay(200);
      }
    };
    await survive("the leader of the snapshot slow", { fault, repair: async () => undefined });
  });

  it("goes on when a server hangs for longer than its connections last", async () => {
    const hanging = await nats.leaderOf(flagEventsStream.name);
    await survive("a server hangs", {
      fault: async () => hanging.signal("SIGSTOP"),
      repair: async () => hanging.signal("SIGCONT"),
    });
  });
});

/** Returns the replicas of streams that are not current. */
async function behind(manager: Parameters<Parameters<typeof withManager>[1]>[0]) {
  const found: string[] = [];
  for await (const { config, cluster } of manager.streams.list()) {
    const replicas = cluster?.replicas ?? [];
    if (replicas.length < 2) found.push(`${config.name} has ${replicas.length + 1} replicas`);
    for (const { name, current } of replicas) if (!current) found.push(`${config.name} on ${name}`);
  }
  return found;
}

/** Reads all flags of both edges without pause for breath. `stop` returns the reads that were not answered. */
function readAll({ edges }: System, { tenant }: Chapter) {
  let stopping = false;
  const refused: string[] = [];
  const reading = Promise.all(
    edges.map(async ({ name, url }) => {
      while (!stopping) {
        const read = await call(`${url}/api/v1/sdk/flags`, { key: tenant.clientKey }).catch(
          (error: Error) => ({ status: error.message }),
        );
        if (read.status !== 200) refused.push(`${name}: ${read.status}`);
        await delay(readPauseMs);
      }
    }),
  );
  return {
    async stop() {
      stopping = true;
      await reading;
      return refused;
    },
  };
}
