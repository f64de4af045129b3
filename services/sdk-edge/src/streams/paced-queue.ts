/**
 * Serves items in small groups, because each item will soon cause a request. The first group is served immediately. If
 * the event loop begins a group late, it is still handling earlier requests. The next groups are then smaller until the
 * loop is on time again. All queues share each group. A waiting item that is added again keeps its position.
 */
export type PacedQueue<T> = {
  add(queue: string, all: Iterable<T>): void;
  remove(queue: string, one: T): void;
  stop(): void;
};

export const groupIntervalMs = 25;

/** Sizes of a group when the loop is on time, a little late, or busy. */
const groupSizes = [
  { lateByMs: 5, size: 100 },
  { lateByMs: 25, size: 25 },
  { lateByMs: Number.POSITIVE_INFINITY, size: 5 },
] as const;

export const maxGroupSize = groupSizes[0].size;

export function createPacedQueue<T>(options: {
  serve: (one: T) => void;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): PacedQueue<T> {
  const { serve, monotonicMs } = options;
  const queues = new Map<string, Set<T>>();
  let timer: NodeJS.Timeout | undefined;
  let dueMs = 0;

  /** Serves an equal share of each queue. A served queue goes behind the others. */
  function serveQueues(size: number): void {
    const share = Math.max(1, Math.floor(size / queues.size));
    let served = 0;
    for (const [name, queue] of [...queues]) {
      if (served >= size) return;
      queues.delete(name);
      for (const one of take(queue, share)) {
        serve(one);
        served += 1;
      }
      if (queue.size > 0) queues.set(name, queue);
    }
  }

  function serveGroup(): void {
    timer = undefined;
    if (queues.size === 0) return;
    const lateMs = monotonicMs() - dueMs;
    serveQueues(groupSizes.find(({ lateByMs }) => lateMs < lateByMs)?.size ?? 0);
    schedule();
  }

  function schedule(): void {
    dueMs = monotonicMs() + groupIntervalMs;
    timer = setTimeout(serveGroup, groupIntervalMs).unref();
  }

  return {
    add(name, all) {
      const queue = queues.get(name) ?? new Set<T>();
      for (const one of all) queue.add(one);
      queues.set(name, queue);
      if (timer !== undefined) return;
      serveQueues(maxGroupSize);
      // The next group keeps the interval, including for items that are added later.
      schedule();
    },
    remove: (name, one) => void queues.get(name)?.delete(one),
    stop: () => clearTimeout(timer),
  };
}

function take<T>(queue: Set<T>, max: number): T[] {
  const taken: T[] = [];
  for (const one of queue) {
    if (taken.length === max) break;
    taken.push(one);
    queue.delete(one);
  }
  return taken;
}
