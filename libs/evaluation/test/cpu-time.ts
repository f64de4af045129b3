/**
 * What work costs this thread, as the best of several runs. It is CPU time: while others have the core no
 * time passes here, so that a busy machine does not look like a slow evaluator.
 */
export function bestCpuMs(work: () => unknown, times: number): number {
  return Math.min(...Array.from({ length: times }, () => cpuMs(work)));
}

export function cpuMs(work: () => unknown): number {
  const begun = process.threadCpuUsage();
  work();
  const { user, system } = process.threadCpuUsage(begun);
  return (user + system) / 1e3;
}
