import { setTimeout as delay } from "node:timers/promises";
import { flagEventsStream, snapshotBucket } from "@halyard/contracts";
import { natsServerVersion } from "@halyard/local-backends";
import { eventually, type NatsCluster, natsServerBinary, startNatsCluster } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import {
  faultSystem,
  resumedWithinMs,
  type SurvivedFault,
  surviveFault,
} from "../src/stories/fault-story.ts";
import { recordFaults } from "../src/stories/reliability-page.ts";
import { withManager } from "../src/system/disturbances.ts";
import { type System, startSystem } from "../src/system/system.ts";
import { openTcpGate, type TcpGate } from "../src/system/tcp-gate.ts";

/** Faults that an installation with three NATS servers survives. */
jest.setTimeout(300_000);

/**
 * Maximum time without a change in streams. nats-server elects a leader within nine seconds, and may then place
 * consumers on the lost server. Each of them costs a time-out.
 */
const streamsResumedWithinMs = 20_000;

describe("given three NATS servers with three replicas of every stream", () => {
  const results: SurvivedFault[] = [];
  const routes: { between: readonly string[]; gate: TcpGate }[] = [];
  let nats: NatsCluster;
  let system: System;

  beforeAll(async () => {
    nats = await startNatsCluster(await natsServerBinary(), async ({ from, to, port }) => {
      const gate = await openTcpGate(port);
      routes.push({ between: [from, to], gate });
      return gate.port;
    });
    system = await startSystem({ ...faultSystem, nats });
  });
  afterAll(async () => {
    await system?.close();
    await Promise.all(routes.map(({ gate }) => gate.close()));
    recordFaults("NATS", { version: await natsServerVersion(await natsServerBinary()), results });
  });

  async function survive(
    name: string,
    steps: { fault: () => Promise<void>; repair: () => Promise<void> },
  ): Promise<void> {
    await awaitReplicated();
    const result = await surviveFault(system, name, steps);
    results.push(result);
    expect(result).toMatchObject({ unanswered: [], faults: [] });
    expect(result.changesPausedMs).toBeLessThan(resumedWithinMs);
    expect(result.streamsPausedMs).toBeLessThan(streamsResumedWithinMs);
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

  it.each([snapshotBucket.streamName, flagEventsStream.name])(
    "continues when the leader of %s is cut off from the two other servers",
    async (stream) => {
      const { name } = await nats.leaderOf(stream);
      const gates = routes.flatMap(({ between, gate }) => (between.includes(name) ? gate : []));
      await survive(`the leader of \`${stream}\` is cut off from the two other servers`, {
        fault: async () => {
          for (const gate of gates) gate.shut();
        },
        repair: async () => {
          for (const gate of gates) gate.open();
        },
      });
    },
  );

  it("continues when the leader of a stream is lost and an empty server replaces it", async () => {
    const lost = await nats.leaderOf(snapshotBucket.streamName);
    const fault = async () => {
      await lost.kill();
      lost.forget();
    };
    await survive(
      "the leader of the snapshot is lost for good, and an empty server takes its place",
      {
        fault,
        repair: lost.start,
      },
    );
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
