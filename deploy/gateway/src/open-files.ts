/** Enough for the streams of an installation, and about 500 MB of memory when all connections are streams. */
const defaultMax = 10_000;

/**
 * Each connection of a client may need one to an upstream, which leaves a third of the process's open files for idle
 * connections to upstreams and everything else.
 */
const filesPerConnection = 3;

/** Returns the default of `MAX_CONNECTIONS` under the limit of open files (`ulimit -n`). */
export function defaultMaxConnections(): number {
  const soft = openFilesLimit();
  if (typeof soft !== "number") return defaultMax;
  return Math.min(defaultMax, Math.floor(soft / filesPerConnection));
}

/** Node raises the soft limit to the hard one when it starts. Undefined: not known on this system, or unlimited. */
function openFilesLimit(): unknown {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft: unknown } } };
  return report.userLimits?.open_files?.soft;
}
