/** Ends something at most once: what a test has stopped is not stopped again at the end. */
export function once(end: () => Promise<void>): () => Promise<void> {
  let ended: Promise<void> | undefined;
  return () => {
    ended ??= end();
    return ended;
  };
}
