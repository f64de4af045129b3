/**
 * Returns the system's monotonic time in milliseconds. All processes of a machine share this clock.
 */
export function nowMs(): number {
  const [seconds, nanoseconds] = process.hrtime();
  return seconds * 1e3 + nanoseconds / 1e6;
}
