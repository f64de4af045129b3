import { randomUUID } from "node:crypto";
import { everythingFilter, type SnapshotRevision } from "@halyard/contracts";
import { connectNats, followSnapshot } from "@halyard/jetstream";
import { pino } from "pino";
import { reportApplied } from "../../../services/sdk-edge/src/snapshot/report-applied.ts";
import { answerParent } from "../processes/answer-parent.ts";

/**
 * Simulated edges that follow the snapshot and send reports, each over its own connection. They store no
 * entries and serve no requests, so that many of them fit into one process.
 */
export type SimulatedEdgesQuestion = { natsUrl: string; start: number } | { stop: true };

const logger = pino({ level: "silent" });
const stops: (() => Promise<void>)[] = [];

answerParent<SimulatedEdgesQuestion>({
  greeting: {},
  async answer(question) {
    if ("stop" in question) await Promise.all(stops.splice(0).map((stop) => stop()));
    else
      await Promise.all(Array.from({ length: question.start }, () => startOne(question.natsUrl)));
    return {};
  },
});

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
      beginRead: () => ({ take: () => undefined, finish: () => undefined }),
      apply: () => undefined,
      isGenuineComplete: () => true,
      isGenuineDeletion: () => true,
      rejected: () => undefined,
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
