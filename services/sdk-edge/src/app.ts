import { createKeyDirectory } from "@halyard/api-keys";
import { type App, createApp, type Logger, type ReadReadiness } from "@halyard/service";
import type { Registry } from "prom-client";
import { createEnvironmentViews } from "./environment/environment-views.ts";
import { registerEdgeMetrics } from "./metrics.ts";
import { createPublisher } from "./publish-changes.ts";
import { createAnswerCounts } from "./sdk/answer-counts.ts";
import { putInFront } from "./sdk/front.ts";
import { registerSdkRoutes } from "./sdk/sdk-routes.ts";
import type { SnapshotHolder } from "./snapshot/snapshot-holder.ts";
import { createStreamHub } from "./streams/stream-hub.ts";
import { createStreamCounts, createStreamRegistry } from "./streams/stream-registry.ts";
import { createStreamRounds, streamSlots } from "./streams/stream-rounds.ts";

/** An edge without its surroundings: HTTP on one side, a snapshot that somebody feeds on the other. */
export type Edge = {
  app: App;
  readiness: ReadReadiness;
  /** Refuses new streams and sends the open ones elsewhere over a few seconds. */
  drain(): Promise<void>;
  /** Stops what goes on by itself. */
  close(): Promise<void>;
};

/** The longest body that an SDK sends: a user's context. */
const bodyLimitBytes = 64 * 1024;

export type EdgeOptions = {
  holder: SnapshotHolder;
  logger: Logger;
  registry: Registry;
  trustedProxies: readonly string[];
  /** Checks every answer against its contract; costs time. */
  checkAnswers: boolean;
  rejectedEntries: () => number;
  now: () => number;
  random: () => number;
};

export function createEdge(options: EdgeOptions): Edge {
  const { holder, registry, now, random } = options;
  const directory = createKeyDirectory();
  const views = createEnvironmentViews();
  const streams = createStreamRegistry(streamSlots);
  const streamCounts = createStreamCounts();
  const answerCounts = createAnswerCounts();
  let draining = false;

  const hub = createStreamHub({ registry: streams, views, counts: streamCounts, now, random });
  const rounds = createStreamRounds({
    registry: streams,
    isKeyLive: directory.isLive,
    counts: streamCounts,
    now,
    random,
  });
  const metrics = registerEdgeMetrics({ ...options, streams, streamCounts, answerCounts });
  holder.subscribe(createPublisher({ directory, views, hub, rounds, metrics, now }));

  const app = createApp({
    logger: options.logger,
    bodyLimitBytes,
    trustedProxies: options.trustedProxies,
    metrics: registry,
    // A line for each request would cost more than answering it.
    requestLog: false,
    checkAnswers: options.checkAnswers,
  });
  const parts = {
    directory,
    views,
    hub,
    counts: answerCounts,
    hasSnapshot: () => holder.snapshot !== undefined,
    isDraining: () => draining,
    now,
  };
  registerSdkRoutes(app, parts);
  putInFront(app, parts);

  return {
    app,
    readiness: () => ({
      ready: holder.snapshot !== undefined,
      source: holder.source,
      stale_seconds: Math.floor((holder.staleMs() ?? 0) / 1_000),
    }),
    async drain() {
      draining = true;
      await rounds.drain();
    },
    async close() {
      rounds.stop();
    },
  };
}
