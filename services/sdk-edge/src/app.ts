import { createIsOperatorToken, type KeyDirectory } from "@halyard/api-keys";
import type { Rate } from "@halyard/rate-limit";
import { type App, createApp, type Logger, type ReadReadiness } from "@halyard/service";
import type { Registry } from "prom-client";
import { applyUpdates } from "./apply-updates.ts";
import { createConfigurationTags } from "./environment/configuration-tags.ts";
import { createEnvironmentViews } from "./environment/environment-views.ts";
import { createWaitingRequests } from "./environment/waiting-requests.ts";
import { createAnswerCounts } from "./http/answer-counts.ts";
import { createAuthentication } from "./http/authentication.ts";
import { answerPreflights } from "./http/preflight.ts";
import {
  bodyLimitBytes,
  type EdgeRoute,
  escapeMalformedPath,
  registerEdgeRoute,
} from "./http/routes.ts";
import { createLimits } from "./limits/limits.ts";
import { registerEdgeMetrics } from "./metrics.ts";
import { createOfrep } from "./ofrep/ofrep.ts";
import { createRulesetEndpoints } from "./ruleset/ruleset-endpoints.ts";
import { createCostlyEvaluations } from "./sdk/costly-evaluations.ts";
import { evaluateRoutes } from "./sdk/evaluate.ts";
import { createEvaluation } from "./sdk/evaluation.ts";
import { flagsRoutes } from "./sdk/flags.ts";
import { reportUsageRoute } from "./sdk/report-usage.ts";
import type { SdkParts } from "./sdk/sdk-parts.ts";
import { streamRoute } from "./sdk/stream.ts";
import type { StreamSlots } from "./slots/stream-slots.ts";
import type { DiskCache } from "./snapshot/disk-cache.ts";
import type { Pace } from "./snapshot/pace.ts";
import type { SnapshotHolder } from "./snapshot/snapshot-holder.ts";
import { createStreams } from "./streams/streams.ts";
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
  const { holder, directory, usage, now, random } = options;
  const isKeyLive = (keyId: string, nowMs: number) => directory.find(keyId, nowMs) !== undefined;
  const views = createEnvironmentViews();
  const streams = createStreams({ views, isKeyLive, now, random, monotonicMs });
  const { hub, upkeep } = streams;
  const counts = createAnswerCounts();
  const costlyEvaluations = createCostlyEvaluations({ monotonicMs });
  let draining = false;

  const metrics = registerEdgeMetrics({
    ...options,
    streams,
    answerCounts: counts,
    costlyEvaluations,
  });

  const app = createEdgeApp(options);
  const parts = {
    holder,
    directory,
    views,
    configurationTags: createConfigurationTags(),
    waiting: createWaitingRequests(),
    hub,
    counts,
    isKeyLive,
    evaluation: createEvaluation({ costlyEvaluations, isKeyLive, now }),
    isDraining: () => draining,
    limits: createLimits({ ...options, usage }),
    ...createAuthentication(directory, createIsOperatorToken(options.operatorTokenDigest)),
    usage,
    slots: options.slots,
    publishReport: options.publishReport,
    logger: options.logger,
    now,
  };
  const ofrep = createOfrep(parts, {
    streamTokenSecret: options.streamTokenSecret,
    streams,
    random,
    monotonicMs,
  });
  const rulesets = createRulesetEndpoints(parts, { streams, random, monotonicMs });
  applyUpdates({ ...options, ...parts, upkeep, rulesets, ofrep, metrics, monotonicMs });
  answerPreflights(app);
  const routes = [...sdkRoutes(parts), ...rulesets.routes, ...ofrep.routes];
  for (const route of routes) registerEdgeRoute(app, route, parts);

  return {
    app,
    readiness: readinessOf(options),
    async drain() {
      draining = true;
      await upkeep.drain();
    },
    async close() {
      streams.stop();
      rulesets.stop();
      costlyEvaluations.stop();
      ofrep.stop();
    },
  };
}

function sdkRoutes(parts: SdkParts): EdgeRoute[] {
  return [
    ...flagsRoutes(parts),
    ...evaluateRoutes(parts),
    streamRoute(parts),
    reportUsageRoute(parts),
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
