/**
 * Does something for many, a few milliseconds at a time, so that everybody else is answered in between.
 * The many are in queues, one for each environment, that are served in turn: where one takes long for
 * each of its own, the others wait for a slice and not for all of it. Who waits already keeps its place.
 */
export type Slices<T> = {
  add(queue: string, all: Iterable<T>): void;
  remove(queue: string, one: T): void;
  stop(): void;
};

/** About what an ordinary burst of requests takes; most changes are told within the first slice. */
export const sliceMs = 5;

export function createSlices<T>(options: {
  visit: (one: T) => void;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): Slices<T> {
  const { visit, elapsed } = options;
  const queues = new Map<string, Set<T>>();
  let next: NodeJS.Immediate | undefined;

  function serveSlice(): void {
    next = undefined;
    const [first] = queues;
    if (first === undefined) return;
    const [name, queue] = first;
    queues.delete(name);
    const untilMs = elapsed() + sliceMs;
    for (const one of queue) {
      queue.delete(one);
      visit(one);
      if (elapsed() >= untilMs) break;
    }
    if (queue.size > 0) queues.set(name, queue);
    if (queues.size > 0) next = setImmediate(serveSlice);
  }

  return {
    add(name, all) {
      const queue = queues.get(name) ?? new Set<T>();
      for (const one of all) queue.add(one);
      queues.set(name, queue);
      if (next === undefined) serveSlice();
    },
    remove: (name, one) => void queues.get(name)?.delete(one),
    stop: () => clearImmediate(next),
  };
}
