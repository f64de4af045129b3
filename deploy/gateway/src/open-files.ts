/** Default of `MAX_CONNECTIONS`. If all connections are streams, they need about 500 MB of memory. */
const defaultMax = 10_000;

/**
 * Open files per client connection: itself, one connection to an upstream, and one for everything else, such as idle
 * connections to upstreams.
 */
const filesPerConnection = 3;

/** Returns the default of `MAX_CONNECTIONS` under the limit of open files (`ulimit -n`). */
export function defaultMaxConnections(): number {
  const soft = openFilesLimit();
  if (typeof soft !== "number") return defaultMax;
  return Math.min(defaultMax, Math.floor(soft / filesPerConnection));
}

/**
 * Returns the soft limit, which Node raises to the hard limit when it starts. Undefined if it is unlimited or unknown.
 */
function openFilesLimit(): unknown {
  const report = process.report.getReport() as { userLimits?: { open_files?: { soft: unknown } } };
  return report.userLimits?.open_files?.soft;
}
