/**
 * Visits many streams in time slices, so that the event loop serves others in between. Organizations share the
 * slices equally, and so do the queues of one organization. An item that takes long is visited in steps, over as
 * many slices as it needs. An item that waits keeps its place when it is added again; one that is being visited
 * gets another visit.
 */
export type Slices<T> = {
  add(organization: string, queue: string, all: Iterable<T>): void;
  /** Removes an item, also while it is being visited. */
  remove(organization: string, queue: string, one: T): void;
  stop(): void;
};

/** The steps of one visit. */
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
  /** Queues with work by organization; next to be served first, on both levels. */
  const organizations = new Map<string, Map<string, Queue<T>>>();
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

  function serveFirst(queues: Map<string, Queue<T>>): void {
    const [first] = queues;
    if (first === undefined) return;
    const [name, queue] = first;
    queues.delete(name);
    serve(queue);
    if (queue.begun !== undefined || queue.waiting.size > 0) queues.set(name, queue);
  }

  function serveSlice(): void {
    next = undefined;
    const [first] = organizations;
    if (first === undefined) return;
    const [organization, queues] = first;
    organizations.delete(organization);
    serveFirst(queues);
    if (queues.size > 0) organizations.set(organization, queues);
    if (organizations.size > 0) next = setImmediate(serveSlice);
  }

  return {
    add(organization, name, all) {
      const queues = organizations.get(organization) ?? new Map<string, Queue<T>>();
      const queue = queues.get(name) ?? { waiting: new Set<T>(), begun: undefined };
      for (const one of all) queue.waiting.add(one);
      queues.set(name, queue);
      organizations.set(organization, queues);
      if (next === undefined) serveSlice();
    },
    remove(organization, name, one) {
      const queue = organizations.get(organization)?.get(name);
      queue?.waiting.delete(one);
      if (queue?.begun?.one === one) queue.begun = undefined;
    },
    stop: () => clearImmediate(next),
  };
}
