import type { Benchmark } from "../benchmark.ts";
import { addedEnvironmentCurve } from "./added-environment.ts";
import { growthBenchmark } from "./curve.ts";
import { deletedProjectCurve } from "./deleted-project.ts";
import { edgeFlagsCurve, streamsCurve } from "./edge-changes.ts";
import { edgesCurve } from "./edges.ts";
import { entriesCurve } from "./entries.ts";
import { flagListCurve } from "./flag-list.ts";
import { fullReadsCurve } from "./full-reads.ts";
import { environmentsCurve, keysCurve, recordsCurve } from "./patches.ts";
import { rebuildCurve } from "./rebuild.ts";
import { startUnderWritesCurve } from "./start-under-writes.ts";
import { webhooksCurve } from "./webhooks.ts";

export const growthBenchmarks: readonly Benchmark[] = [
  edgeFlagsCurve,
  entriesCurve,
  startUnderWritesCurve,
  fullReadsCurve,
  rebuildCurve,
  addedEnvironmentCurve,
  deletedProjectCurve,
  flagListCurve,
  environmentsCurve,
  keysCurve,
  recordsCurve,
  edgesCurve,
  streamsCurve,
  webhooksCurve,
].map(growthBenchmark);
