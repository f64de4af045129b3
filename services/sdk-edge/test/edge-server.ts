import { setImmediate as nextTurn } from "node:timers/promises";
import { createKeyDirectory, everyEntryIsGenuine } from "@halyard/api-keys";
import type { SnapshotEntry } from "@halyard/contracts";
import { createMetrics } from "@halyard/service";
import { pino } from "pino";
import { createEdge, type Edge, type EdgeOptions } from "../src/app.ts";
import {
  createSnapshotHolder,
  type Pace,
  type SnapshotHolder,
} from "../src/snapshot/snapshot-holder.ts";
import { type Counting, createCounting } from "../src/usage/counting.ts";
import { id } from "./builders.ts";

/** An edge that listens on a free port. It receives entries from the test instead of NATS. */
export type EdgeServer = {
  url: string;
  edge: Edge;
  holder: SnapshotHolder;
  /** The usage counts, which are not sent. Undefined unless `countsUsage` is set. */
  counting: Counting | undefined;
  /** Returns a value of `/metrics`, by the beginning of its line after the prefix `halyard_`. */
  metric(begins: string): Promise<number>;
  /** Returns the complete log. */
  log(): string;
  /** Advances the edge's clock. */
  passTime(ms: number): void;
  /** Delivers entries as NATS would, and waits until they are applied. */
  feed(...entries: SnapshotEntry[]): Promise<void>;
  stop(): Promise<void>;
};

/** Starts an edge. Without entries it starts without a snapshot. */
export async function startEdgeServer(
  entries?: readonly SnapshotEntry[],
  {
    countsUsage = false,
    ...settings
  }: Partial<
    Pick<
      EdgeOptions,
      | "streamTokenSecret"
      | "requestsPerSecond"
      | "reportsPerSecond"
      | "invalidKeyRate"
      | "operatorTokenDigest"
      | "slots"
      | "publishReport"
      | "trustedProxies"
    >
  > & {
    countsUsage?: boolean;
  } = {},
): Promise<EdgeServer> {
  const lines: string[] = [];
  let aheadMs = 0;
  const now = () => Date.now() + aheadMs;
  // The edge applies entries at the end of the turn, so that a test can wait for it.
  const pace: Pace = { addWork: () => undefined, pauseMs: () => 0 };
  const holder = createSnapshotHolder({ now, pace });
  const registry = createMetrics({ service: "sdk-edge" });
  const counting = countsUsage ? createCounting({ holder }) : undefined;
  const edge = createEdge({
    holder,
    // The entries of these tests are not signed.
    directory: createKeyDirectory(everyEntryIsGenuine),
    pace,
    logger: pino({ level: "trace" }, { write: (line: string) => lines.push(line) }),
    registry,
    trustedProxies: [],
    rejectedEntries: () => 0,
    invalidKeyRate: { requestsPerSecond: 100, burst: 1_000 },
    reportsPerSecond: 1_000,
    ...settings,
    usage: counting?.usage,
    now,
    random: () => 0.5,
  });
  if (entries !== undefined) holder.replace(id("epoch"), entries);
  const url = await edge.app.listen({ host: "127.0.0.1", port: 0 });
  return {
    url,
    edge,
    holder,
    counting,
    async metric(begins) {
      const lines = (await registry.metrics()).split("\n");
      const line = lines.find((one) => one.startsWith(`halyard_${begins}`));
      return Number(line?.split(" ").at(-1));
    },
    log: () => lines.join(""),
    passTime: (ms) => {
      aheadMs += ms;
    },
    async feed(...fed) {
      for (const entry of fed) holder.apply(entry);
      await nextTurn();
    },
    async stop() {
      await edge.drain();
      await edge.close();
      edge.app.server.closeAllConnections();
      await edge.app.close();
    },
  };
}
