import { readFileSync, writeFileSync } from "node:fs";
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
import type { ChangeStream } from "../src/traffic/changes.ts";

/** Faults that an installation with three NATS servers survives. */
jest.setTimeout(300_000);

/** Maximum time after a fault without an accepted change. */
const resumedWithinMs = 10_000;
const readPauseMs = 10;
const samplePauseMs = 5;

type Result = { name: string; longestPauseMs: number; reads: string; faults: number };

describe("given three NATS servers with three replicas of every stream", () => {
  const results: Result[] = [];
  let nats: NatsCluster;
  let system: System;

  beforeAll(async () => {
    nats = await startNatsCluster(await natsServerBinary());
    system = await startSystem({
      ...{ managements: 2, schedulers: 1, dispatchers: 1, meterings: 1, edges: 2, nats },
    });
  });
  afterAll(async () => {
    await system?.close();
    if (process.env.RECORD_RELIABILITY === "true") record(results);
  });

  /**
   * Runs a fault beside changes, streams and reads, and expects that nothing was lost or refused. After 40 further changes,
   * the fault is repaired.
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
    const pauses = watchPauses(changes);
    await fault();
    await awaitAnswers(changes, 40);
    const longestPauseMs = pauses.stop();
    await repair();
    const faults = await chapter.faults();
    const { answered, refused } = await reads.stop();
    const sent = answered + refused.length;
    results.push({ name, longestPauseMs, reads: `${answered} of ${sent}`, faults: faults.length });
    expect({ faults, refused }).toEqual({ faults: [], refused: [] });
    expect(longestPauseMs).toBeLessThan(resumedWithinMs);
  }

  async function awaitReplicated(): Promise<void> {
    await eventually(() => withManager(nats.url, behind), {
      until: (names) => names.length === 0,
      because: "all replicas are current",
    });
  }

  it.each([snapshotBucket.streamName, flagEventsStream.name])(
    "continues when the leader of %s is killed",
    async (stream) => {
      const leader = await nats.leaderOf(stream);
      await survive(`the leader of \`${stream}\` is killed`, {
        fault: leader.kill,
        repair: leader.start,
      });
    },
  );

  it("continues when a server is lost and an empty one replaces it", async () => {
    const lost = nats.nodes[2] as ClusterNode;
    const fault = async () => {
      await lost.kill();
      lost.forget();
    };
    await survive("a server is lost for good, and an empty one takes its place", {
      fault,
      repair: lost.start,
    });
    await awaitReplicated();
  });

  it("continues when a server stops repeatedly, as on a slow disk", async () => {
    const slow = await nats.leaderOf(snapshotBucket.streamName);
    const fault = async () => {
      for (let burst = 0; burst < 5; burst += 1) {
        slow.signal("SIGSTOP");
        await delay(400);
        slow.signal("SIGCONT");
        await delay(200);
      }
    };
    await survive("the leader of the snapshot stops five times for 0.4 s, as on a slow disk", {
      fault,
      repair: async () => undefined,
    });
  });

  it("continues when a server hangs", async () => {
    const hanging = await nats.leaderOf(flagEventsStream.name);
    await survive("the leader of the event log hangs", {
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

/** Measures the longest time in which no change was accepted. */
function watchPauses({ acknowledged }: ChangeStream) {
  let count = acknowledged.length;
  let lastMs = performance.now();
  let longestMs = 0;
  const sample = () => {
    const nowMs = performance.now();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    if (acknowledged.length > count) lastMs = nowMs;
    count = acknowledged.length;
  };
  const timer = setInterval(sample, samplePauseMs);
  return {
    stop() {
      clearInterval(timer);
      sample();
      return Math.round(longestMs);
    },
  };
}

/** Writes the table of docs/reliability.md. */
function record(results: readonly Result[]): void {
  const file = new URL("../../docs/reliability.md", import.meta.url);
  const rows = results.map(
    ({ name, longestPauseMs, reads, faults }) =>
      `| ${name} | ${(longestPauseMs / 1_000).toFixed(1)} s | ${reads} | ${faults} |`,
  );
  const text = readFileSync(file, "utf8");
  const [before, after] = text.split(/(?<=<!-- faults -->\n).*(?=<!-- end -->)/s);
  const head =
    "| Fault | Longest time without an accepted change | Reads answered | Lost or doubled changes |\n|---|--:|--:|--:|";
  writeFileSync(file, `${before}${[head, ...rows].join("\n")}\n${after}`);
}

/** Reads all flags of both edges, again and again. `stop` returns the reads that were not answered. */
function readAll({ edges }: System, { tenant }: Chapter) {
  let stopping = false;
  let answered = 0;
  const refused: string[] = [];
  const reading = Promise.all(
    edges.map(async ({ name, url }) => {
      while (!stopping) {
        const read = await call(`${url}/api/v1/sdk/flags`, { key: tenant.clientKey }).catch(
          (error: Error) => ({ status: error.message }),
        );
        if (read.status === 200) answered += 1;
        else refused.push(`${name}: ${read.status}`);
        await delay(readPauseMs);
      }
    }),
  );
  return {
    async stop() {
      stopping = true;
      await reading;
      return { answered, refused };
    },
  };
}
