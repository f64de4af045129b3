/** Minimum time between two lines. An attacker can cause any number of the events. */
const intervalMs = 10_000;

/** Returns a function that logs at most one line in ten seconds, with the number of lines that it left out. */
export function throttleLog<Fields extends object>(
  log: (fields: Fields & { unlogged: number }) => void,
): (fields: Fields) => void {
  let loggedAtMs = Number.NEGATIVE_INFINITY;
  let unlogged = 0;
  return (fields) => {
    const nowMs = performance.now();
    if (nowMs - loggedAtMs < intervalMs) {
      unlogged += 1;
      return;
    }
    log({ ...fields, unlogged });
    loggedAtMs = nowMs;
    unlogged = 0;
  };
}
