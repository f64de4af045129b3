/**
 * Measures the CPU time of this thread, so that a busy machine does not look like a slow evaluator. Some systems update
 * CPU time only every few milliseconds, so that shorter work can measure as zero.
 */

/** Returns the CPU time of the fastest of several runs, for an upper bound. */
export function bestCpuMs(work: () => unknown, times: number): number {
  return Math.min(...Array.from({ length: times }, () => cpuMsOf(work, 0)));
}

/** Minimum measured time: many times the resolution of CPU time. */
const minMeasuredMs = 30;

/** Returns the average CPU time, for comparisons. Repeats the work until the total is measurable. */
export function averageCpuMs(work: () => unknown): number {
  return cpuMsOf(work, minMeasuredMs);
}

function cpuMsOf(work: () => unknown, minMs: number): number {
  const begun = process.threadCpuUsage();
  for (let times = 1; ; times += 1) {
    work();
    const { user, system } = process.threadCpuUsage(begun);
    const usedMs = (user + system) / 1e3;
    if (usedMs >= minMs) return usedMs / times;
  }
}
