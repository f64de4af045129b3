/**
 * Does something for many, a few milliseconds at a time, so that everybody else is answered in between.
 * The many are in queues, one for each environment, that are served in turn: where one takes long for
 * each of its own, the others wait for a slice and not for all of it. What takes long for a single one is
 * done in steps, over as many slices as it takes. Who waits already keeps its place; who is added while
 * its turn lasts gets another one.
 */
export type Slices<T> = {
  add(queue: string, all: Iterable<T>): void;
  /** Also ends its turn, if that lasts. */
  remove(queue: string, one: T): void;
  stop(): void;
};

/** What is to be done before the turn of one is over. */
export type Steps = Generator<undefined, void>;

/** About what an ordinary burst of requests takes; most changes are told within the first slice. */
export const sliceMs = 5;

type Queue<T> = { waiting: Set<T>; begun: { one: T; steps: Steps } | undefined };

export function createSlices<T>(options: {
  /** Does all of it at once, or says in which steps. */
  visit: (one: T) => Steps | undefined;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): Slices<T> {
  const { visit, elapsed } = options;
  const queues = new Map<string, Queue<T>>();
  let next: NodeJS.Immediate | undefined;

  /** Answers whether there is time left for others of the queue. */
  function goOn(queue: Queue<T>, untilMs: number): boolean {
    while (queue.begun !== undefined) {
      if (queue.begun.steps.next().done === true) queue.begun = undefined;
      if (elapsed() >= untilMs) return false;
    }
    return true;
  }

  function serve(queue: Queue<T>): void {
    const untilMs = elapsed() + sliceMs;
    if (!goOn(queue, untilMs)) return;
    for (const one of queue.waiting) {
      queue.waiting.delete(one);
      const steps = visit(one);
      if (steps !== undefined) queue.begun = { one, steps };
      if (elapsed() >= untilMs || !goOn(queue, untilMs)) return;
    }
  }

  function serveSlice(): void {
    next = undefined;
    const [first] = queues;
    if (first === undefined) return;
    const [name, queue] = first;
    queues.delete(name);
    serve(queue);
    if (queue.begun !== undefined || queue.waiting.size > 0) queues.set(name, queue);
    if (queues.size > 0) next = setImmediate(serveSlice);
  }

  return {
    add(name, all) {
      const queue = queues.get(name) ?? { waiting: new Set<T>(), begun: undefined };
      for (const one of all) queue.waiting.add(one);
      queues.set(name, queue);
      if (next === undefined) serveSlice();
    },
    remove(name, one) {
      const queue = queues.get(name);
      queue?.waiting.delete(one);
      if (queue?.begun?.one === one) queue.begun = undefined;
    },
    stop: () => clearImmediate(next),
  };
}
