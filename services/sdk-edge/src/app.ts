import { createIsOperatorToken, type KeyDirectory } from "@halyard/api-keys";
import { type App, createApp, escapeMalformedPath } from "@halyard/http";
import type { Rate } from "@halyard/rate-limit";
import type { Logger, ReadReadiness } from "@halyard/service";
import type { Registry } from "prom-client";
import { createCostlyEvaluations } from "./admission/costly-evaluations.ts";
import { createLimits } from "./admission/limits.ts";
import type { StreamSlots } from "./admission/stream-slots.ts";
import { createConfigurationTags } from "./answers/configuration-tags.ts";
import { createEnvironmentViews } from "./answers/environment-views.ts";
import { createRulesets } from "./answers/rulesets.ts";
import { createWaitingRequests } from "./answers/waiting-requests.ts";
import { applyUpdates } from "./apply-updates.ts";
import { createAnswerCounts } from "./http/answer-counts.ts";
import { createAuthentication } from "./http/authentication.ts";
import type { EdgeParts, Streams } from "./http/edge-parts.ts";
import { type EdgeRoute, registerEdgeRoute } from "./http/edge-route.ts";
import { createEvaluation } from "./http/evaluation.ts";
import { bodyLimitBytes } from "./http/hot-path.ts";
import { bulkRoute } from "./http/ofrep/bulk.ts";
import { singleRoute } from "./http/ofrep/single.ts";
import { refetchStreamRoute } from "./http/ofrep/stream.ts";
import { createStreamTokens } from "./http/ofrep/stream-tokens.ts";
import { answerPreflights } from "./http/preflight.ts";
import { evaluateRoutes } from "./http/sdk/evaluate.ts";
import { flagsRoutes } from "./http/sdk/flags.ts";
import { listRoute } from "./http/sdk/lists.ts";
import { reportUsageRoute } from "./http/sdk/report-usage.ts";
import { rulesetRoute, rulesetStreamRoute } from "./http/sdk/rulesets.ts";
import { streamRoute } from "./http/sdk/stream.ts";
import { registerEdgeMetrics } from "./metrics.ts";
import type { DiskCache } from "./snapshot/disk-cache.ts";
import { createReplacedChunks } from "./snapshot/replaced-chunks.ts";
import type { Pace, SnapshotHolder } from "./snapshot/snapshot-holder.ts";
import { createRefetchStreams } from "./streams/refetch-streams.ts";
import { createRulesetStreams } from "./streams/ruleset-streams.ts";
import { createStreamRegistry, type StreamOptions } from "./streams/stream-registry.ts";
import { createStreamUpkeep } from "./streams/stream-upkeep.ts";
import { createValueStreams } from "./streams/value-streams.ts";
import type { PublishReport } from "./usage/publish-report.ts";
import type { Usage } from "./usage/usage.ts";

/** An edge without its connections: the HTTP server and everything that follows the snapshot. */
export type Edge = {
  app: App;
  readiness: ReadReadiness;
  /** Rejects new streams, and ends the open ones over a few seconds so that their clients connect to other edges. */
  drain(): Promise<void>;
  /** Stops the timers and the queued work. */
  close(): Promise<void>;
};

export type EdgeOptions = {
  holder: SnapshotHolder;
  /** Verifies API keys. Updated with every change of the holder's snapshot. */
  directory: KeyDirectory;
  /** The pace at which the holder applies changes. */
  pace: Pace;
  /** Undefined: the edge has no cache on disk. */
  cache?: Pick<DiskCache, "follow"> | undefined;
  logger: Logger;
  registry: Registry;
  trustedProxies: readonly string[];
  rejectedEntries: () => number;
  /** Signs the tokens of OFREP streams. Undefined: OFREP clients are not offered streams. */
  streamTokenSecret?: string | undefined;
  operatorTokenDigest?: string | undefined;
  /** Rate limit of one address that sends invalid keys. */
  invalidKeyRate: Rate;
  /** Rate limit of each key. Undefined: no limit. */
  requestsPerSecond?: number | undefined;
  /** Rate limit of the usage reports of each organization. */
  reportsPerSecond: number;
  /** Undefined: requests are not counted and not limited by plan. */
  usage?: Usage | undefined;
  /** Undefined: streams are not limited by plan. */
  slots?: StreamSlots | undefined;
  /** Undefined: reports of applications are answered 503. */
  publishReport?: PublishReport | undefined;
  now: () => number;
  random: () => number;
};

export function createEdge(options: EdgeOptions): Edge {
  const { holder, directory, usage, now } = options;
  const isKeyLive = (keyId: string, nowMs: number) => directory.find(keyId, nowMs) !== undefined;
  const views = createEnvironmentViews(monotonicMs);
  const configurationTags = createConfigurationTags(views.of);
  const answering = { views, tagOf: configurationTags.of, monotonicMs };
  const openStreams = createStreamRegistry();
  const streams = streamsOf({ ...options, ...answering, openStreams, isKeyLive });
  const rulesets = createRulesets(answering);
  const costlyEvaluations = createCostlyEvaluations({ monotonicMs });
  let draining = false;

  const parts: EdgeParts = {
    holder,
    directory,
    isKeyLive,
    views,
    configurationTags,
    waiting: createWaitingRequests(),
    replacedChunks: createReplacedChunks(now),
    rulesets,
    openStreams,
    streams,
    ...createAuthentication(directory, createIsOperatorToken(options.operatorTokenDigest)),
    limits: createLimits({ ...options, usage }),
    usage,
    slots: options.slots,
    evaluation: createEvaluation({ costlyEvaluations, isKeyLive, now }),
    counts: createAnswerCounts(),
    publishReport: options.publishReport,
    isDraining: () => draining,
    logger: options.logger,
    now,
  };
  const metrics = registerEdgeMetrics({
    ...options,
    openStreams,
    answerCounts: parts.counts,
    costlyEvaluations,
  });
  const stopGivingUp = applyUpdates(parts, { ...options, metrics, monotonicMs });
  const app = createEdgeApp(options);
  answerPreflights(app);
  for (const route of routesOf(parts, options)) registerEdgeRoute(app, route, parts);

  return {
    app,
    readiness: readinessOf(options),
    async drain() {
      draining = true;
      await streams.upkeep.drain();
    },
    async close() {
      stopGivingUp();
      const { replacedChunks } = parts;
      for (const part of [...Object.values(streams), rulesets, costlyEvaluations, replacedChunks])
        part.stop();
    },
  };
}

function streamsOf(
  given: StreamOptions & { isKeyLive: (keyId: string, nowMs: number) => boolean },
): Streams {
  return {
    upkeep: createStreamUpkeep(given),
    values: createValueStreams(given),
    rulesets: createRulesetStreams(given),
    refetches: createRefetchStreams(given),
  };
}

function routesOf(parts: EdgeParts, { streamTokenSecret: secret }: EdgeOptions): EdgeRoute[] {
  const tokens = secret === undefined ? undefined : createStreamTokens(secret);
  return [
    ...flagsRoutes(parts),
    ...evaluateRoutes(parts),
    streamRoute(parts),
    reportUsageRoute(parts),
    rulesetRoute(parts),
    rulesetStreamRoute(parts),
    listRoute(parts),
    bulkRoute(parts, tokens),
    singleRoute(parts),
    refetchStreamRoute(parts, tokens),
  ];
}

/**
 * An edge is ready when it can serve its snapshot and knows the streams of the other edges. One that serves its cache
 * cannot know them without NATS, and stays ready.
 */
function readinessOf({ holder, slots }: EdgeOptions): ReadReadiness {
  let isReady = false;
  return () => {
    const knowsOthers = slots?.knowsOthers() ?? true;
    isReady ||= holder.source === "cache" || (holder.snapshot !== undefined && knowsOthers);
    return {
      ready: isReady,
      source: holder.source,
      stale_seconds: Math.floor((holder.staleMs() ?? 0) / 1_000),
    };
  };
}

function createEdgeApp({ logger, trustedProxies, registry }: EdgeOptions): App {
  return createApp({
    ...{ logger, bodyLimitBytes, trustedProxies },
    metrics: registry,
    // Logging each request would take longer than responding to it.
    requestLog: false,
    rewriteTarget: escapeMalformedPath,
  });
}

/** Monotonic clock in milliseconds. */
const monotonicMs = () => performance.now();
