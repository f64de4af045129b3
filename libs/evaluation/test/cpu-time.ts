/**
 * What work costs this thread. It is CPU time: while others have the core no time passes here, so that a
 * busy machine does not look like a slow evaluator. Systems may account for it only every few milliseconds;
 * what takes less may seem to take none.
 */

/** The best of several runs, for an upper bound. */
export function bestCpuMs(work: () => unknown, times: number): number {
  return Math.min(...Array.from({ length: times }, () => cpuMsOf(work, 0)));
}

/** Many times what systems do not account for. */
const minMeasuredMs = 30;

/** On average, for comparisons: it is done as often as it takes to measure it. */
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
