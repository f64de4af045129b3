import { audiencesBenchmark } from "./audiences/audiences-benchmark.ts";
import type { Benchmark } from "./benchmark.ts";
import { changesBenchmark } from "./changes/changes-benchmark.ts";
import { dashboardBenchmark } from "./dashboard/dashboard-benchmark.ts";
import { edgeRulesBenchmark } from "./edge-start/edge-rules-benchmark.ts";
import { edgeStartBenchmark } from "./edge-start/edge-start-benchmark.ts";
import { evaluationBenchmark } from "./evaluation/evaluation-benchmark.ts";
import { flagsBenchmark } from "./flags/flags-benchmark.ts";
import { gatewayBenchmark } from "./gateway/gateway-benchmark.ts";
import { edgeFlagsCurve, streamsCurve } from "./growth/edge-changes.ts";
import { edgesCurve, environmentsCurve, keysCurve, recordsCurve } from "./growth/patches.ts";
import { addedEnvironmentCurve, deletedProjectCurve, flagListCurve } from "./growth/projects.ts";
import {
  entriesCurve,
  fullReadsCurve,
  rebuildCurve,
  startUnderWritesCurve,
} from "./growth/snapshot-reads.ts";
import { webhooksCurve } from "./growth/webhooks.ts";
import { peersBenchmark } from "./peers/peers-benchmark.ts";
import { peopleBenchmark } from "./people/people-benchmark.ts";
import { refetchBenchmark } from "./refetch/refetch-benchmark.ts";
import { requestsBenchmark } from "./requests/requests-benchmark.ts";
import { schedulesBenchmark } from "./schedules/schedules-benchmark.ts";
import { sdkEvaluationBenchmark } from "./sdk/sdk-evaluation-benchmark.ts";
import { sdkListsBenchmark } from "./sdk/sdk-lists-benchmark.ts";
import { sdkStartBenchmark } from "./sdk/sdk-start-benchmark.ts";
import { sdkStreamsBenchmark } from "./sdk/sdk-streams-benchmark.ts";
import { streamsBenchmark } from "./streams/streams-benchmark.ts";
import { twoEdgesBenchmark } from "./streams/two-edges-benchmark.ts";
import { targetingBenchmark } from "./targeting/targeting-benchmark.ts";
import { tracingBenchmark } from "./tracing/tracing-benchmark.ts";
import { usageBenchmark } from "./usage/usage-benchmark.ts";
import { webhooksBenchmark } from "./webhooks/webhooks-benchmark.ts";

export const allBenchmarks: readonly Benchmark[] = [
  ...[
    gatewayBenchmark,
    flagsBenchmark,
    evaluationBenchmark,
    targetingBenchmark,
    peersBenchmark,
    refetchBenchmark,
  ],
  ...[streamsBenchmark, twoEdgesBenchmark, sdkEvaluationBenchmark, sdkStartBenchmark],
  ...[sdkListsBenchmark, sdkStreamsBenchmark],
  ...[
    edgeStartBenchmark,
    edgeRulesBenchmark,
    changesBenchmark,
    schedulesBenchmark,
    webhooksBenchmark,
  ],
  ...[usageBenchmark, tracingBenchmark, audiencesBenchmark, peopleBenchmark],
  ...[requestsBenchmark, dashboardBenchmark],
  ...[edgeFlagsCurve, entriesCurve, startUnderWritesCurve, fullReadsCurve, rebuildCurve],
  ...[addedEnvironmentCurve, deletedProjectCurve, flagListCurve, environmentsCurve, keysCurve],
  ...[recordsCurve, edgesCurve, streamsCurve, webhooksCurve],
];
