/**
 * Hands out turns. Many want one at once, and each who gets it will soon ask for something; so the
 * first ones get it at once and the rest in small groups, all queues in turn. When the event loop has
 * come late to a group, those of before are still being answered: the next groups are smaller until it
 * is on time again. So others get their answers meanwhile, whatever a turn costs.
 *
 * Who waits already keeps its place.
 */
export type Spread<T> = {
  /** Lets all of these have a turn. */
  add(queue: string, all: Iterable<T>): void;
  /** Gives a turn up. */
  remove(queue: string, one: T): void;
  stop(): void;
};

export const groupIntervalMs = 25;

/** How many get their turn when the loop is on time, a little late, or busy. */
const groupSizes = [
  { lateByMs: 5, size: 100 },
  { lateByMs: 25, size: 25 },
  { lateByMs: Number.POSITIVE_INFINITY, size: 5 },
] as const;

export const largestGroup = groupSizes[0].size;

export function createSpread<T>(options: {
  turn: (one: T) => void;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): Spread<T> {
  const { turn, elapsed } = options;
  const queues = new Map<string, Set<T>>();
  let timer: NodeJS.Timeout | undefined;
  let dueMs = 0;

  /** An equal share for each queue; one that was served goes behind the others. */
  function serve(size: number): void {
    const share = Math.max(1, Math.floor(size / queues.size));
    let served = 0;
    for (const [name, queue] of [...queues]) {
      if (served >= size) return;
      queues.delete(name);
      for (const one of take(queue, share)) {
        turn(one);
        served += 1;
      }
      if (queue.size > 0) queues.set(name, queue);
    }
  }

  function serveGroup(): void {
    timer = undefined;
    if (queues.size === 0) return;
    const lateMs = elapsed() - dueMs;
    serve(groupSizes.find(({ lateByMs }) => lateMs < lateByMs)?.size ?? 0);
    schedule();
  }

  function schedule(): void {
    dueMs = elapsed() + groupIntervalMs;
    timer = setTimeout(serveGroup, groupIntervalMs).unref();
  }

  return {
    add(name, all) {
      const queue = queues.get(name) ?? new Set<T>();
      for (const one of all) queue.add(one);
      queues.set(name, queue);
      if (timer !== undefined) return;
      serve(largestGroup);
      // The next group keeps its distance, also when nobody is left for it yet.
      schedule();
    },
    remove: (name, one) => void queues.get(name)?.delete(one),
    stop: () => clearTimeout(timer),
  };
}

function take<T>(queue: Set<T>, most: number): T[] {
  const taken: T[] = [];
  for (const one of queue) {
    if (taken.length === most) break;
    taken.push(one);
    queue.delete(one);
  }
  return taken;
}
