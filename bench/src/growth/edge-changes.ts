import { startChangingEdge } from "./changing-edge.ts";
import type { Curve } from "./curve.ts";

const cpu = "CPU of the edge per change";
const cpuPerStream = "CPU of the edge per change and stream";
const visible = "entry published to event on every stream, median";

/** One stream for each reader process. */
const fewStreams = 2;
const fewFlags = 100;

export const edgeFlagsCurve: Curve = {
  name: "edge-flags",
  summary: "cost of a change on an edge, by flags in the environment",
  method:
    "Entries of one environment are published one at a time, each after the previous event has arrived on the streams.",
  of: "flags",
  sizes: [1_000, 20_000, 100_000],
  quickSizes: [10, 50],
  rounds: 3,
  costs: [
    { what: cpu, unit: "ms", ratioBelow: 5 },
    { what: visible, unit: "ms" },
  ],
  open: async (bench) => async (flags) => {
    const { nats, measure } = await startChangingEdge(bench, { flags, streams: fewStreams });
    return {
      nats,
      async measure() {
        const { cpuMsPerChange, medianLatencyMs } = await measure();
        return { [cpu]: cpuMsPerChange, [visible]: medianLatencyMs };
      },
    };
  },
};

export const streamsCurve: Curve = {
  name: "streams",
  summary: "cost of a change per open stream on an edge, by open streams",
  method:
    "Entries of an environment with 100 flags are published one at a time, each after the previous event has arrived on all streams.",
  of: "streams",
  sizes: [100, 10_000],
  quickSizes: [4, 20],
  rounds: 3,
  costs: [{ what: cpuPerStream, unit: "µs" }],
  open: async (bench) => async (streams) => {
    const { nats, measure } = await startChangingEdge(bench, { flags: fewFlags, streams });
    return {
      nats,
      async measure() {
        const { cpuMsPerChange } = await measure();
        return { [cpuPerStream]: (cpuMsPerChange * 1e3) / streams };
      },
    };
  },
};
