/** Returns a function that runs `end` at most once, so that clean-up does not stop again what a test has stopped. */
export function once(end: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined;
  return () => {
    ended ??= end();
    return ended;
  };
}
