import { createTimeSlicer, runSteps, type Steps } from "@halyard/timing";

export type { Steps } from "@halyard/timing";

/**
 * Visits many streams in time slices, so that the event loop serves other requests in between. Organizations share the
 * slices equally, and so do the queues of one organization. A long visit continues over several slices. A waiting item
 * that is added again keeps its position. An item that is added while it is visited gets another visit.
 */
type FairScheduler<T> = {
  add(organization: string, queue: string, all: Iterable<T>): void;
  /** Removes an item, even while it is being visited. */
  remove(organization: string, queue: string, one: T): void;
  stop(): void;
};

/**
 * Length of a slice: about the time that an ordinary burst of requests takes. Most changes are sent within the first
 * slice.
 */
export const sendSliceMs = 5;

type Queue<T> = { waiting: Set<T>; work: { one: T; steps: Steps } | undefined };

export function createFairScheduler<T>(options: {
  work: (one: T) => Steps;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): FairScheduler<T> {
  const { work, monotonicMs } = options;
  /** Queues with work by organization; next to be served first, on both levels. */
  const organizations = new Map<string, Map<string, Queue<T>>>();
  const slicer = createTimeSlicer({ work: serveNext, sliceMs: sendSliceMs, monotonicMs });

  /**
   * Serves the first queue of the first organization. Both then go behind the others. They keep their positions while
   * they are served, so that `add` and `remove` find them during a visit.
   */
  function serveNext(isOver: () => boolean): boolean {
    for (const [organization, queues] of organizations) {
      for (const [name, queue] of queues) {
        const hasWork = serve(queue, isOver);
        queues.delete(name);
        if (hasWork) queues.set(name, queue);
        break;
      }
      organizations.delete(organization);
      if (queues.size > 0) organizations.set(organization, queues);
      break;
    }
    return organizations.size > 0;
  }

  /** Returns whether work is left. */
  function serve(queue: Queue<T>, isOver: () => boolean): boolean {
    do {
      const [one] = queue.waiting;
      if (queue.work === undefined && one !== undefined) {
        queue.waiting.delete(one);
        queue.work = { one, steps: work(one) };
      }
      if (queue.work === undefined) return false;
      const { steps } = queue.work;
      let isDone = true;
      try {
        isDone = runSteps(steps, isOver);
      } finally {
        // A failed visit does not continue; the other visits do.
        if (isDone) queue.work = undefined;
      }
    } while (!isOver());
    return queue.work !== undefined || queue.waiting.size > 0;
  }

  return {
    add(organization, name, all) {
      const queues = organizations.get(organization) ?? new Map<string, Queue<T>>();
      const queue = queues.get(name) ?? { waiting: new Set<T>(), work: undefined };
      for (const one of all) queue.waiting.add(one);
      queues.set(name, queue);
      organizations.set(organization, queues);
      slicer.start({ atOnce: true });
    },
    remove(organization, name, one) {
      const queue = organizations.get(organization)?.get(name);
      queue?.waiting.delete(one);
      if (queue?.work?.one === one) queue.work = undefined;
    },
    stop: slicer.stop,
  };
}
