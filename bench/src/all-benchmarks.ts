import type { Benchmark } from "./benchmark.ts";
import { changesBenchmark } from "./changes/changes-benchmark.ts";
import { edgeStartBenchmark } from "./edge-start/edge-start-benchmark.ts";
import { flagsBenchmark } from "./flags/flags-benchmark.ts";
import { streamsBenchmark } from "./streams/streams-benchmark.ts";

export const allBenchmarks: readonly Benchmark[] = [
  flagsBenchmark,
  streamsBenchmark,
  edgeStartBenchmark,
  changesBenchmark,
];
