/**
 * What is promised within a time is asked for over HTTP, beside all that a machine has to do otherwise.
 * So as much is added as some ordinary requests take here and now: next to nothing on a quiet machine,
 * seconds on one that is busy, where each step of what was promised takes as long.
 */
const requestsAllowed = 20;
const samples = 5;

/** The promised time with what a busy machine adds to it. */
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
