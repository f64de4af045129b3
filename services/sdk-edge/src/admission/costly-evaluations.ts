import { createTimeSlicer, runSteps } from "@halyard/timing";
import {
  createEvaluationQueue,
  type EvaluationQueue,
  type Organization,
  type QueuedEvaluation,
  type SlicedEvaluation,
} from "./evaluation-queue.ts";

/**
 * Runs costly evaluations in time slices. The event loop serves other requests between two slices. Only a few
 * evaluations run concurrently, because otherwise all of them would finish late. The test of slow evaluations
 * (test/admission/slow-evaluation.test.ts) measures how long another organization waits meanwhile.
 */
export type CostlyEvaluations = {
  /** Queues an evaluation. Returns a function that drops it unless it has finished. */
  add(organizationId: string, evaluation: SlicedEvaluation): () => void;
  /** Number of evaluations that have not started. */
  readonly waiting: number;
  /** Number of evaluations that were rejected since the start. */
  readonly rejected: number;
  stop(): void;
};

/** Length of a slice: about the time that an ordinary burst of requests takes. */
export const evaluationSliceMs = 10;

/**
 * Maximum number of concurrent evaluations of one organization. With two, a short evaluation does not wait for one that
 * takes many seconds.
 */
export const maxRunning = 2;

/**
 * Maximum number of waiting evaluations while the oldest has waited for `burstMs`. It bounds their memory, and the wait of
 * the last one.
 */
export const maxWaiting = 200;

/** Time for which any number may wait, because many costly evaluations take less than a millisecond. */
export const burstMs = 250;

/**
 * Maximum wait, less than half of the time that a gateway waits for an edge. After that the client soon leaves, and the
 * work is lost.
 */
export const maxWaitMs = 5_000;

export function createCostlyEvaluations(options: {
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): CostlyEvaluations {
  const { monotonicMs } = options;
  const queue = createEvaluationQueue();
  let rejected = 0;

  function reject(evaluation: QueuedEvaluation): void {
    queue.remove(evaluation);
    rejected += 1;
    evaluation.reject();
  }

  function rejectOverdue(): void {
    const nowMs = monotonicMs();
    for (const evaluation of queue.waiting) {
      if (nowMs - evaluation.sinceMs < maxWaitMs) return;
      reject(evaluation);
    }
  }

  function rejectExcess(): void {
    const [oldest] = queue.waiting;
    if (oldest === undefined || monotonicMs() - oldest.sinceMs < burstMs) return;
    for (const evaluation of queue.excessOver(maxWaiting)) reject(evaluation);
  }

  function runSlice(isOver: () => boolean): boolean {
    rejectOverdue();
    const organization = queue.nextOrganization();
    if (organization === undefined) return false;
    const beganMs = monotonicMs();
    run(queue, organization, isOver);
    organization.usedMs += monotonicMs() - beganMs;
    queue.endSlice(organization);
    rejectExcess();
    return !queue.isEmpty();
  }

  const slicer = createTimeSlicer({ work: runSlice, sliceMs: evaluationSliceMs, monotonicMs });
  return {
    add(organizationId, evaluation) {
      const added = queue.add(organizationId, evaluation, monotonicMs());
      slicer.start();
      return () => queue.remove(added);
    },
    get waiting() {
      return queue.waiting.size;
    },
    get rejected() {
      return rejected;
    },
    stop: slicer.stop,
  };
}

/** Continues one evaluation, and starts others when that one finishes within the slice. */
function run(queue: EvaluationQueue, organization: Organization, isOver: () => boolean): void {
  const { running } = organization;
  while (running.size < maxRunning && queue.start(organization) !== undefined);
  let [evaluation] = running;
  while (evaluation !== undefined) {
    running.delete(evaluation);
    if (!runSteps(evaluation.steps, isOver)) {
      running.add(evaluation);
      return;
    }
    evaluation = isOver() ? undefined : queue.start(organization);
  }
}
