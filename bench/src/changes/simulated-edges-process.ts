import { randomUUID } from "node:crypto";
import { everythingFilter, type SnapshotRevision } from "@halyard/contracts";
import { connectNats } from "@halyard/jetstream";
import { followSnapshot } from "@halyard/snapshot";
import { pino } from "pino";
import { reportApplied } from "../../../services/sdk-edge/src/snapshot/report-applied.ts";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * Simulated edges that follow the snapshot and send reports, each over its own connection. They store no
 * entries and serve no requests, so that many of them fit into one process.
 */
const logger = pino({ level: "silent" });
const nothing = () => undefined;
const always = () => true;
const stops: (() => Promise<void>)[] = [];

const api = {
  async start({ natsUrl, count }: { natsUrl: string; count: number }) {
    await Promise.all(Array.from({ length: count }, () => startOne(natsUrl)));
  },
  async stop() {
    await Promise.all(stops.splice(0).map((stop) => stop()));
  },
};
export type SimulatedEdgesApi = typeof api;
answerParent(api);

async function startOne(url: string): Promise<void> {
  const connection = await connectNats({ nats: { url }, name: "simulated-edge", logger });
  let applied: SnapshotRevision | undefined;
  let onApplied = () => {};
  const reports = reportApplied({
    connection,
    edge: randomUUID(),
    holder: {
      get applied() {
        return applied;
      },
      onApplied: (listener) => {
        onApplied = listener;
      },
    },
    isCurrent: () => followed.isCurrent(),
  });
  await reports.startReported;
  const followed = followSnapshot({
    connection,
    filter: everythingFilter,
    logger,
    follower: {
      beginRead: () => ({ take: nothing, finish: nothing }),
      ...{ apply: nothing, rejected: nothing, isGenuineComplete: always, isGenuine: always },
      reached(revision) {
        applied = revision;
        onApplied();
      },
    },
  });
  stops.push(async () => {
    reports.stop();
    await followed.stop();
    await connection.drain();
  });
  await followed.ready;
}
