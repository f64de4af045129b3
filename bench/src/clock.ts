/**
 * Milliseconds of the system's monotonic clock, which is the same one in all processes of a machine;
 * so a moment in one process can be taken from a moment in another.
 */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
