/** Requests that are sent at the same time. */
const concurrency = 6;

/** Runs a task for each item, a few at a time. It stops at the first error, and when the signal is aborted. */
export async function runPool<Item>(
  items: readonly Item[],
  task: (item: Item) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const waiting = [...items];
  const work = async () => {
    for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) {
      signal.throwIfAborted();
      await task(item);
    }
  };
  await Promise.all(Array.from({ length: Math.min(concurrency, items.length) }, work));
}
