/**
 * Adapts a guaranteed time to the load of the machine, by adding the duration of some ordinary requests. They take
 * almost no time on an idle machine, and seconds on a busy one, where each step of the measured operation takes as
 * long.
 */
const requestsAllowed = 20;
const samples = 5;

/** Returns the guaranteed time plus the delay that the load of this machine adds. */
export async function onThisMachine(
  promisedMs: number,
  ordinaryRequest: () => Promise<unknown>,
): Promise<number> {
  let slowestMs = 0;
  for (let sample = 0; sample < samples; sample += 1) {
    const begunMs = performance.now();
    await ordinaryRequest();
    slowestMs = Math.max(slowestMs, performance.now() - begunMs);
  }
  return promisedMs + requestsAllowed * slowestMs;
}
